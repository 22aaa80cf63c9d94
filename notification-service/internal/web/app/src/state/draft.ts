/**
 * The report that is being written. It lives in this browser until it is
 * filed, so that neither a reload nor a lost network costs a word. Its
 * idempotency key is made once: however often it is sent, it is filed once.
 */
import { signal } from '@preact/signals';

import { Failure, must, reportService, type NewReport, type Report } from '../api/client';
import { stored } from './preferences';

export interface Draft {
  key: string;
  title: string;
  description: string;
  category_id?: number;
  position?: { latitude: number; longitude: number };
  address: string;
  privacy_level: NewReport['privacy_level'];
  /** Sent, and no answer yet that settles it. */
  sending: boolean;
}

const empty = (): Draft => ({
  key: randomKey(),
  title: '',
  description: '',
  address: '',
  privacy_level: 'public',
  sending: false,
});

export const draft = stored<Draft>('draft', empty());
export const draftError = signal<unknown>();

export function updateDraft(part: Partial<Draft>): void {
  draft.value = { ...draft.value, ...part };
}

export function discardDraft(): void {
  draft.value = empty();
  draftError.value = undefined;
}

/**
 * Files the draft. When no answer comes it stays as it was sent, and trying
 * again is harmless.
 */
export async function fileDraft(): Promise<Report | undefined> {
  updateDraft({ sending: true });
  draftError.value = undefined;
  const { key, position, category_id = 0, title, description, address, privacy_level } = draft.value;
  const body: NewReport = {
    title: title.trim(),
    description,
    category_id,
    privacy_level,
    ...(address && { address }),
    ...position,
  };
  try {
    const report = await must(reportService.POST('/reports', { params: { header: { 'Idempotency-Key': key } }, body }));
    discardDraft();
    return report;
  } catch (error) {
    draftError.value = error;
    if (!(error instanceof Failure) || !error.uncertain) updateDraft({ sending: false });
    return undefined;
  }
}

/** crypto.randomUUID is missing where the page came by plain HTTP. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
