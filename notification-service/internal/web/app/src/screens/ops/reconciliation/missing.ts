/**
 * What groups of consumers have not found of what was published. The groups of both
 * services' databases are one list here; a service that does not answer takes nothing
 * from the other.
 */
import { must, notificationService, reportService, type MissingMessage, type ReconciliationGroup } from '../../../api/client';
import { SERVICES, type Service } from '../health';

/** The most that one request publishes again. */
const BATCH = 500;
/** How many messages of a service are shown. */
export const SHOWN = 100;

export type Group = ReconciliationGroup & { service: Service };

export interface Found {
  groups: Group[];
  messages: MissingMessage[];
  /** Whether there are more than are shown. */
  more: boolean;
  errors: unknown[];
}

/** What became of messages that were published again. */
export interface Outcome {
  republished: number;
  unpublished: number;
  gone: number;
}

const readGroups = {
  reports: () => must(reportService.GET('/admin/reports/reconciliation')),
  notifications: () => must(notificationService.GET('/admin/notifications/reconciliation')),
};

type Query = { group?: string; cursor?: string; limit: number };

const readMessages = {
  reports: (query: Query) => must(reportService.GET('/admin/reports/reconciliation/messages', { params: { query } })),
  notifications: (query: Query) => must(notificationService.GET('/admin/notifications/reconciliation/messages', { params: { query } })),
};

/** Reads both services; with neither there is nothing to show. */
export async function readFound(): Promise<Found> {
  const all = await Promise.allSettled(
    SERVICES.map(async (service) => {
      const [{ groups }, page] = await Promise.all([readGroups[service](), readMessages[service]({ limit: SHOWN })]);
      return { groups: groups.map((group) => ({ ...group, service })), ...page };
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
  const sum: Outcome = { republished: 0, unpublished: 0, gone: 0 };
  for (let from = 0; from < ids.length; from += BATCH) {
    const message_ids = ids.slice(from, from + BATCH);
    const done = await must(reportService.POST('/admin/outbox/messages/republish', { body: { message_ids, reason } }));
    sum.republished += done.republished;
    sum.unpublished += done.unpublished;
    sum.gone += done.gone;
  }
  return sum;
}

/** Publishes again what a group has not found, except what may be on its way. */
export async function republishAll({ service, group }: Group, reason: string): Promise<Outcome> {
  const ids = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = await readMessages[service]({ group, limit: BATCH, ...(cursor && { cursor }) });
    for (const message of page.messages) if (message.state !== 'waiting') ids.add(message.message_id);
    cursor = page.next_cursor;
  } while (cursor);
  return republish([...ids], reason);
}
