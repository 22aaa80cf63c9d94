/**
 * One search for operators: what a report's number or id, a message's id or a
 * trace leads to, in the outbox, among dead letters and delayed messages, and in
 * the logs of webhooks. Mails are not searched: they would show who is notified
 * of what.
 */
import {
  must,
  notificationService,
  reportService,
  type DeadLetter,
  type DelayedMessage,
  type Delivery,
  type OutboxMessage,
} from '../../api/client';
import { reference } from '../../ui/reference';

/** The entered text, by its form. */
export type Question =
  | { kind: 'id'; id: string }
  | { kind: 'reference'; text: string }
  | { kind: 'trace'; id: string }
  | { kind: 'address'; host: string }
  | { kind: 'text'; text: string };

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const REFERENCE = /^[0-9a-hjkmnp-tv-z]{4}-?[0-9a-hjkmnp-tv-z]{4}$/i;
const TRACE = /^(?:00-)?([0-9a-f]{32})(?:-[0-9a-f]{16}-[0-9a-f]{2})?$/i;

export function questionOf(entered: string): Question {
  const text = entered.trim();
  const trace = TRACE.exec(text)?.[1];
  if (UUID.test(text)) return { kind: 'id', id: text.toLowerCase() };
  if (trace) return { kind: 'trace', id: trace.toLowerCase() };
  // Of an address nothing but its host leaves the browser.
  if (text.includes('@')) return { kind: 'address', host: text.slice(text.lastIndexOf('@') + 1).toLowerCase() };
  if (REFERENCE.test(text)) return { kind: 'reference', text: text.toUpperCase() };
  return { kind: 'text', text };
}

/** The rows of one place, or why they could not be read. */
export interface Found<T> {
  items: T[];
  error?: unknown;
}

export interface Results {
  /** The report that is meant, if there is one. */
  report?: { id: string; title: string };
  outbox: Found<OutboxMessage>;
  dead: Found<DeadLetter>;
  delayed: Found<DelayedMessage>;
  webhooks: Found<Delivery>;
}

const LIMIT = 50;
const STATUSES = ['failed', 'pending', 'published'] as const;

/** Asks everywhere at once. A place that does not answer takes nothing from the others. */
export async function find(question: Question): Promise<Results> {
  const id = question.kind === 'id' ? question.id : undefined;
  const report = await reportOf(question);
  const about = report?.id;
  const trace = question.kind === 'trace' ? question.id : undefined;
  const text = about ?? id ?? trace ?? (question.kind === 'text' ? question.text : undefined);
  const key = about ? { report_id: about } : id ? { message_id: id } : trace ? { trace_id: trace } : undefined;
  const named = about ? { report_id: about } : id ? { message_id: id } : undefined;

  const [outbox, dead, delayed, webhooks] = await Promise.all([
    from(
      key &&
        Promise.all(
          STATUSES.map((status) =>
            must(reportService.GET('/admin/outbox/messages', { params: { query: { status, ...key, limit: LIMIT } } })),
          ),
        ).then((pages) => pages.flatMap(({ messages }) => messages)),
    ),
    from(
      text &&
        must(notificationService.GET('/admin/dlq/messages', { params: { query: { text, limit: LIMIT } } })).then(({ items }) => items),
    ),
    from(named && delayedOf(about ?? id)),
    from(
      named &&
        must(notificationService.GET('/admin/deliveries', { params: { query: { ...named, limit: LIMIT } } })).then(({ items }) => items),
    ),
  ]);
  return { ...(report && { report }), outbox, dead, delayed, webhooks };
}

async function from<T>(pending: Promise<T[]> | '' | undefined): Promise<Found<T>> {
  if (!pending) return { items: [] };
  try {
    return { items: await pending };
  } catch (error) {
    return { items: [], error };
  }
}

/** The report with an id or a number; an id may be a message's, too. */
async function reportOf(question: Question): Promise<Results['report']> {
  try {
    if (question.kind === 'id') {
      const { id, title } = await must(reportService.GET('/reports/{id}', { params: { path: { id: question.id } } }));
      return { id, title };
    }
    if (question.kind === 'reference') {
      const { reports } = await must(reportService.GET('/reports', { params: { query: { q: question.text, limit: LIMIT } } }));
      const wanted = question.text.replace('-', '');
      return reports.find(({ id }) => reference(id).replace('-', '') === wanted);
    }
  } catch {
    // It is none, or nobody may see it: what is about it is found all the same.
  }
  return undefined;
}

/** Messages that wait until a time have no search: there are few of them. */
async function delayedOf(id: string | undefined): Promise<DelayedMessage[]> {
  const { items } = await must(notificationService.GET('/admin/delayed', { params: { query: { limit: 500 } } }));
  return items.filter(({ message_id, body }) => message_id === id || (body as { report_id?: unknown }).report_id === id);
}
