/** The officials' questions about a report and its reporter's answers, and the answer that is being written. */
import { signal } from '@preact/signals';

import { must, reportService, type DialogueItem } from '../api/client';
import { randomKey } from '../state/draft';
import { confirmUser } from '../state/session';
import { userData } from '../state/storage';

/** How many reports somebody may be answering about. */
const MAX_KEPT = 20;

/**
 * An answer that the reporter is writing. It survives a reload and a lost
 * connection. However often it is sent as it is, it is there once.
 */
interface AnswerDraft {
  key: string;
  text: string;
}

/** Pairs of a report's id and the answer about it, the latest first. */
const drafts = userData<[report: string, draft: AnswerDraft][]>('answers', () => []);

export function answerOn(report: string): AnswerDraft {
  return drafts.value.find(([id]) => id === report)?.[1] ?? { key: '', text: '' };
}

export function writeAnswer(report: string, text: string): void {
  const others = drafts.value.filter(([id]) => id !== report);
  drafts.value = text ? [[report, { key: randomKey(), text }] as [string, AnswerDraft], ...others].slice(0, MAX_KEPT) : others;
}

/** Sends what the reporter has written; it is gone from the draft only once officials have it. */
export async function sendAnswer(report: string): Promise<boolean> {
  if (!(await confirmUser())) return false;
  const { key, text } = answerOn(report);
  const params = { path: { id: report }, header: { 'Idempotency-Key': key } };
  await must(reportService.POST('/reports/{id}/answers', { params, body: { text: text.trim() } }));
  writeAnswer(report, '');
  return true;
}

export function createDialogue(report: string) {
  const items = signal<DialogueItem[]>([]);
  const error = signal<unknown>();
  let latest = 0;
  const load = async () => {
    const mine = ++latest;
    try {
      const found = await must(reportService.GET('/reports/{id}/dialogue', { params: { path: { id: report } } }));
      if (mine !== latest) return; // another one began later
      items.value = found.items;
      error.value = undefined;
    } catch (failure) {
      if (mine === latest) error.value = failure;
    }
  };
  return { items, error, load };
}

export type OpenDialogue = ReturnType<typeof createDialogue>;
