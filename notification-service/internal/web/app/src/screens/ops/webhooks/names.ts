import type { Delivery, WebhookEventType } from '../../../api/client';

export type EventType = WebhookEventType;

/** Every event that is sent; the last is only ever asked for by an operator. */
export const EVENT_TYPES: readonly EventType[] = [
  'report.created',
  'report.status.updated',
  'report.vote.received',
  'report.moderated',
  'report.corrected',
  'report.disputed',
  'report.commented',
  'report.overdue',
  'report.photo.ready',
  'webhook.test',
];
export const TEST_TYPE: EventType = 'webhook.test';

export const DELIVERY_STATES: readonly Delivery['state'][] = ['waiting', 'held', 'done', 'dead', 'cancelled'];
