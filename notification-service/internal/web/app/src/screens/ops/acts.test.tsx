import { render, type ComponentChild } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { notificationService, reportService, type Webhook } from '../../api/client';
import { categories } from '../../state/categories';
import { session, type Role } from '../../state/session';
import { category, ok, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { Router } from '../../ui/router';
import { Areas } from './areas/areas';
import { CityCalendar } from './calendar/calendar';
import { Categories } from './categories/categories';
import { DeadLetters } from './dead-letters';
import { Departments } from './departments';
import { Outbox } from './outbox';
import { Queues } from './queues';
import { Reconciliation } from './reconciliation/reconciliation';
import { Replays } from './replays';
import { Schedules } from './schedules/schedules';
import { Webhooks } from './webhooks/webhooks';

const AT = '2026-11-22T07:30:00Z';
const ID = '0198c0de-0000-7000-8000-000000000001';

const letter = {
  id: 7,
  queue: 'q',
  message_id: 'm7',
  type: 'report.created',
  error_class: 'permanent',
  error: 'no',
  failed_at: AT,
  body: {},
};
const endpoint: Webhook = {
  id: ID,
  url: 'https://hooks.example.org/',
  description: 'Work orders',
  event_types: [],
  category_ids: [],
  area: [],
  order: 'report',
  scopes: [],
  in_flight: 2,
  state: 'enabled',
  state_since: AT,
  secret_since: AT,
  version: 3,
  created_at: AT,
  updated_at: AT,
  summary: { succeeded: 1, failed: 0, waiting: 0, held: 0 },
};
const pool = {
  queue: 'q',
  depth: 0,
  rate_per_s: 0,
  error_rate: 0,
  handler_p50_ms: 0,
  handler_p99_ms: 0,
  paused: false,
  consumers: 1,
  stalled: 0,
  concurrency: 4,
  prefetch: 50,
  elsewhere: false,
};
const job = (latest?: object) => ({
  name: 'overdue',
  times: 'every 1m0s',
  catch_up: 'last',
  next_at: AT,
  paused: false,
  overruns: false,
  latest,
});
const history = { since: AT, step_seconds: 10, replicas: [], series: [] };
const stats = {
  pending: 0,
  delayed: 0,
  failed: 2,
  oldest_pending_seconds: 0,
  replicas: 1,
  shards: [],
  relay: { id: ID, connected: true, shards: 1, in_flight: 0, window: 1, returned: 0, nacked: 0, connects: 1, blocked_seconds: 0 },
};
const failed = (id: string) => ({ id, routing_key: 'report.created', report_id: 'r1', created_at: AT, retry_count: 3, status: 'failed' });

const answers: Record<string, unknown> = {
  '/admin/dlq/groups': { items: [{ queue: 'q', error_class: 'permanent', error_group: 'no', open: 2, oldest: AT, newest: AT }] },
  '/admin/dlq/stats': { items: [{ queue: 'q', open: 2, replaying: 0, resolved: 0, discarded: 1 }] },
  '/admin/dlq/messages': { items: [{ ...letter, state: 'open' }] },
  '/admin/dlq/messages/{id}': { ...letter, state: 'open', attempts: [] },
  '/admin/dlq/replays': {
    items: [{ id: ID, selection: {}, state: 'running', total: 2, resolved: 0, failed: 0, pending: 2, in_flight: 0, created_at: AT }],
  },
  '/admin/workers': { items: [pool], waiting: [], nodes: [], findings: [] },
  '/admin/workers/history': history,
  '/admin/delayed': { items: [{ queue: 'q', message_id: 'm1', type: 'report.created', due_at: AT }] },
  '/admin/webhooks': { items: [endpoint] },
  '/admin/webhooks/{id}': endpoint,
  '/admin/webhooks/{id}/history': { since: AT, step_seconds: 60, points: [] },
  '/admin/webhooks/{id}/deliveries': { items: [] },
  '/admin/deliveries/{id}': {
    id: 7,
    webhook_id: ID,
    message_id: 'm1',
    type: 'report.created',
    state: 'dead',
    created_at: AT,
    attempts: [],
  },
  '/admin/outbox/stats': stats,
  '/admin/outbox/history': history,
  '/admin/outbox/refused': { messages: [] },
  '/admin/outbox/messages': { messages: [failed('a'), failed('b')] },
  '/admin/reports/reconciliation': { groups: [] },
  '/admin/reports/reconciliation/messages': { messages: [] },
  '/admin/notifications/reconciliation': {
    groups: [{ group: 'notifications', missing: 1, unknown: 0, awaited: 0, gap: 0, late_seconds: 40, compared_until: AT }],
  },
  '/admin/notifications/reconciliation/messages': {
    messages: [
      { message_id: ID, group: 'notifications', state: 'missing', routing_key: 'report.created', published_from: AT, published_until: AT },
    ],
  },
  '/admin/reports/schedules': { schedules: [job()] },
  '/admin/notifications/schedules': { schedules: [] },
  '/reports/departments': { departments: [{ id: 1, name: 'Lights', category_ids: [2], routes: [] }] },
  '/reports/calendar': { zone: 'UTC', shifts: [{ day: 'monday', from: '08:00', to: '16:00' }], holidays: ['2026-12-25'], targets: [] },
  '/areas': { type: 'FeatureCollection', features: [{ type: 'Feature', geometry: null, properties: { code: 'east', name: 'East' } }] },
  '/reports/areas': {
    type: 'FeatureCollection',
    languages: ['en'],
    located: true,
    features: [{ type: 'Feature', geometry: null, properties: { code: 'east', names: { en: 'East' } } }],
  },
  '/reports/categories/changes': { changes: [] },
  '/reports/categories': {
    languages: ['en'],
    categories: [{ id: 2, icon: 'lamp', accepts_reports: true, retired: false, texts: [{ language: 'en', name: 'Lights' }] }],
  },
};

/** The screens, and the buttons of each that read; all others change something. */
const screens: [string, () => ComponentChild, string[]][] = [
  ['dead letters', () => <DeadLetters path={[]} />, ['Search']],
  ['a dead letter', () => <DeadLetters path={['7']} />, ['Copy']],
  ['replays', () => <Replays />, []],
  ['queues', () => <Queues />, ['q', 'Show']],
  ['outbox', () => <Outbox />, ['Copy', 'Copy']],
  ['webhooks', () => <Webhooks path={[]} />, []],
  ['a webhook', () => <Webhooks path={[ID]} />, []],
  ['a delivery', () => <Webhooks path={[ID, '7']} />, []],
  ['reconciliation', () => <Reconciliation />, ['Copy']],
  ['schedules', () => <Schedules />, []],
  ['areas', () => <Areas />, []],
  ['departments', () => <Departments />, []],
  ['calendar', () => <CityCalendar />, []],
  ['categories', () => <Categories />, ['Show']],
];

let root: HTMLElement;
const buttons = () => [...root.querySelectorAll('button')].map(({ textContent }) => textContent.trim());

async function showAs(role: Role, screen: ComponentChild) {
  session.value = { sub: 'a', name: 'A', role, expires_at: '2030-01-01T00:00:00Z' };
  await act(() => render(<Router>{screen}</Router>, root));
  for (let i = 0; i < 3; i++) await act(settled); // what is read by what is then shown
}

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  categories.value = [category()];
  serve(notificationService, 'GET', (path) => ok(answers[path]));
  const tagged = { status: 200, headers: { ETag: '"1"' } };
  serve(reportService, 'GET', (path) => ({ data: answers[path], response: new Response(null, tagged) }));
});

afterEach(async () => {
  await act(() => render(null, root));
  session.value = undefined;
});

test.each(screens)('an auditor sees no button that changes something: %s', async (_, screen, reads) => {
  await showAs('auditor', screen());
  const seen = buttons();
  expect(seen.filter((name) => !reads.includes(name))).toEqual([]);
  expect(root.querySelectorAll('input[type=checkbox]:not(fieldset:disabled *)')).toHaveLength(0);
  await act(() => render(null, root));
  await showAs('operator', screen());
  expect(buttons().length).toBeGreaterThan(seen.length);
});
