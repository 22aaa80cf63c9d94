/**
 * The messages that groups of consumers have not found of those published. The groups of both
 * services' databases are one list here; a service that does not answer takes nothing
 * from the other.
 */
import { must, notificationService, reportService, type MissingMessage, type ReconciliationGroup } from '../../../api/client';
import { SERVICES, type Service } from '../health';

/** The most that one request publishes again, or closes. */
const BATCH = 500;
/** How many messages of a service are shown. */
export const SHOWN = 100;

export type Group = ReconciliationGroup & { service: Service };

export type Missing = MissingMessage & { service: Service };

export interface Found {
  groups: Group[];
  messages: Missing[];
  /** Whether there are more than are shown. */
  more: boolean;
  errors: unknown[];
}

/** The outcome of messages that were published again, or closed. */
export interface Outcome {
  republished: number;
  unpublished: number;
  gone: number;
  closed: number;
}

const NOTHING: Outcome = { republished: 0, unpublished: 0, gone: 0, closed: 0 };

const readGroups = {
  reports: () => must(reportService.GET('/admin/reports/reconciliation')),
  notifications: () => must(notificationService.GET('/admin/notifications/reconciliation')),
};

type Query = { group?: string; cursor?: string; limit: number };

const readMessages = {
  reports: (query: Query) => must(reportService.GET('/admin/reports/reconciliation/messages', { params: { query } })),
  notifications: (query: Query) => must(notificationService.GET('/admin/notifications/reconciliation/messages', { params: { query } })),
};

type CloseRequest = { group: string; message_ids: string[]; reason: string };

const sendClose = {
  reports: (body: CloseRequest) => must(reportService.POST('/admin/reports/reconciliation/messages/close', { body })),
  notifications: (body: CloseRequest) => must(notificationService.POST('/admin/notifications/reconciliation/messages/close', { body })),
};

/** Reads both services; with neither there is nothing to show. */
export async function readFound(): Promise<Found> {
  const all = await Promise.allSettled(
    SERVICES.map(async (service) => {
      const [{ groups }, page] = await Promise.all([readGroups[service](), readMessages[service]({ limit: SHOWN })]);
      return {
        ...page,
        groups: groups.map((group) => ({ ...group, service })),
        messages: page.messages.map((message) => ({ ...message, service })),
      };
    }),
  );
  const told = all.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const errors: unknown[] = all.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  if (told.length === 0) throw errors[0];
  return {
    groups: told.flatMap(({ groups }) => groups),
    messages: told.flatMap(({ messages }) => messages),
    more: told.some(({ next_cursor }) => next_cursor !== undefined),
    errors,
  };
}

/** Publishes messages again. */
export async function republish(ids: string[], reason: string): Promise<Outcome> {
  const sum = { ...NOTHING };
  for (const message_ids of batches(ids)) {
    const done = await must(reportService.POST('/admin/outbox/messages/republish', { body: { message_ids, reason } }));
    sum.republished += done.republished;
    sum.unpublished += done.unpublished;
    sum.gone += done.gone;
  }
  return sum;
}

/** Publishes again what a group has not found, except what may be on its way. */
export async function republishAll(group: Group, reason: string): Promise<Outcome> {
  return republish(await readLost(group), reason);
}

/** Lets a group wait no longer for messages. */
export async function close({ service, group }: Pick<Group, 'service' | 'group'>, ids: string[], reason: string): Promise<Outcome> {
  const sum = { ...NOTHING };
  for (const message_ids of batches(ids)) sum.closed += (await sendClose[service]({ group, message_ids, reason })).closed;
  return sum;
}

/** Lets a group wait no longer for what it has not found, except what may be on its way. */
export async function closeAll(group: Group, reason: string): Promise<Outcome> {
  return close(group, await readLost(group), reason);
}

async function readLost({ service, group }: Group): Promise<string[]> {
  const ids = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = await readMessages[service]({ group, limit: BATCH, ...(cursor && { cursor }) });
    for (const message of page.messages) if (message.state !== 'waiting') ids.add(message.message_id);
    cursor = page.next_cursor;
  } while (cursor);
  return [...ids];
}

function batches(ids: string[]): string[][] {
  return Array.from({ length: Math.ceil(ids.length / BATCH) }, (_, n) => ids.slice(n * BATCH, (n + 1) * BATCH));
}
