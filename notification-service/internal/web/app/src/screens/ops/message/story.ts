/** One message's way through both services, by time, and what of it is missing. */
import { must, notificationService, reportService, type OutboxMessage, type StoryEntry } from '../../../api/client';
import { hostOf } from '../webhooks/state';

/** The answer of a service, or why there is none. */
interface Side {
  entries: StoryEntry[];
  /** Of the outbox alone. */
  message?: OutboxMessage;
  trace_id?: string;
  error?: unknown;
}

export interface Story {
  /** The row in the outbox, as long as there is one. */
  message?: OutboxMessage;
  trace?: string;
  entries: StoryEntry[];
  /** Why one side, or both, said nothing. */
  errors: unknown[];
  missing: Missing[];
  /** The names of webhook endpoints by their ids, where one has a part in it. */
  endpoints: Map<string, string>;
}

/** Steps that have not happened, or are not known any longer. */
export type Missing = 'gone' | 'failed' | 'not-published' | 'not-handled' | 'letter-open';

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** Asks both services. One that does not answer takes nothing from the other. */
export async function readStory(id: string): Promise<Story> {
  // The outbox knows no other ids; dead letters of other programs have some.
  const outbox: Side = UUID.test(id)
    ? await side(must(reportService.GET('/admin/outbox/messages/{id}/story', { params: { path: { id } } })))
    : { entries: [] };
  const report = outbox.message?.report_id;
  const effects = await side(
    must(
      notificationService.GET('/admin/messages/{id}/story', { params: { path: { id }, query: { ...(report && { report_id: report }) } } }),
    ),
  );
  const entries = inOrder(outbox.entries, effects.entries);
  return {
    ...(outbox.message && { message: outbox.message }),
    ...(outbox.trace_id && { trace: outbox.trace_id }),
    entries,
    errors: [outbox.error, effects.error].filter((error) => error !== undefined),
    missing: missingOf(outbox, effects),
    endpoints: entries.some(({ delivery_id }) => delivery_id) ? await readEndpoints() : new Map(),
  };
}

/** There is a story without their names. */
async function readEndpoints(): Promise<Map<string, string>> {
  const { items } = await must(notificationService.GET('/admin/webhooks', { params: { query: { limit: 100 } } })).catch(() => ({
    items: [],
  }));
  return new Map(items.map(({ id, description, url }) => [id, description || hostOf(url)]));
}

/**
 * By time, and no effect before its publishing: that has the time at which it was recorded, a
 * little after the broker had the message.
 */
function inOrder(outbox: StoryEntry[], effects: StoryEntry[]): StoryEntry[] {
  let before = 0;
  const timed = outbox.map((entry) => {
    const at = Date.parse(entry.at);
    const first = Math.min(at, ...effects.map((effect) => Date.parse(effect.at)).filter((time) => time >= before));
    before = at;
    return { entry, at: entry.kind === 'published' ? first : at };
  });
  return [...timed, ...effects.map((entry) => ({ entry, at: Date.parse(entry.at) }))].sort((a, b) => a.at - b.at).map(({ entry }) => entry);
}

async function side(pending: Promise<Side>): Promise<Side> {
  try {
    return await pending;
  } catch (error) {
    return { entries: [], error };
  }
}

/** Entries of a service that did not answer are unknown, not missing. */
function missingOf(outbox: Side, effects: Side): Missing[] {
  const missing: Missing[] = [];
  const status = outbox.message?.status;
  if (!outbox.error && !outbox.message) missing.push('gone');
  if (status === 'failed') missing.push('failed');
  if (status === 'pending') missing.push('not-published');
  if (effects.error) return missing;
  const open = openLetters(effects.entries);
  if (open) missing.push('letter-open');
  const handled = [...outbox.entries, ...effects.entries].some(({ kind }) => kind === 'handled');
  if (status === 'published' && !handled && !open) missing.push('not-handled');
  return missing;
}

/** Whether a dead letter waits for an operator, or for the effect of its replay. */
function openLetters(entries: StoryEntry[]): boolean {
  const closed = new Set(entries.filter(({ kind }) => kind === 'resolved' || kind === 'discarded').map((entry) => entry.dead_letter_id));
  return entries.some(({ kind, dead_letter_id }) => kind === 'dead_lettered' && !closed.has(dead_letter_id));
}
