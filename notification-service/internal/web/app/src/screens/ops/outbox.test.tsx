import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test } from 'vitest';

import { reportService, type OutboxStats } from '../../api/client';
import { ok, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { Outbox } from './outbox';

const OWNER = '11111111-2222-3333-4444-555555555555';

const outbox: OutboxStats = {
  pending: 12,
  delayed: 2,
  failed: 0,
  oldest_pending_seconds: 3,
  replicas: 2,
  shards: [
    {
      shard: 0,
      owner: OWNER,
      lease_until: '2026-11-22T07:30:05Z',
      epoch: 4,
      pending: 12,
      delayed: 2,
      failed: 0,
      oldest_pending_seconds: 3,
    },
    { shard: 1, epoch: 2, pending: 0, delayed: 0, failed: 0, oldest_pending_seconds: 0 },
  ],
  relay: {
    id: OWNER,
    connected: true,
    shards: 1,
    lease_valid: true,
    in_flight: 5,
    window: 512,
    open_circuits: {},
    published_per_s: 0,
    confirm_p50_ms: 0,
    confirm_p99_ms: 0,
    returned: 1,
    nacked: 2,
    connects: 3,
    blocked_seconds: 7,
  },
};

test('each refused message says what waits behind it, and a failed one that nothing does', async () => {
  const message = {
    id: 'm1',
    routing_key: 'report.created',
    report_id: 'r1',
    created_at: '2026-11-22T07:30:00Z',
    retry_count: 2,
    status: 'pending',
  };
  const refused = {
    messages: [
      {
        message: { ...message, next_attempt_at: '2026-11-22T07:30:09Z', last_error: 'nacked' },
        behind: 3,
        behind_since: '2026-11-22T07:30:05Z',
      },
      { message: { ...message, id: 'm2' }, behind: 0 },
    ],
  };
  const answers: Record<string, unknown> = {
    '/admin/outbox/history': { since: '2026-11-22T07:30:00Z', step_seconds: 10, replicas: [], series: [] },
    '/admin/outbox/stats': outbox,
    '/admin/outbox/refused': refused,
    '/admin/outbox/messages': { messages: [{ ...message, id: 'm3', status: 'failed' }] },
  };
  serve(reportService, 'GET', (path) => ok(answers[path]));
  const root = document.createElement('div');
  await act(() => render(<Outbox />, root));
  for (let i = 0; i < 3; i++) await act(settled);
  const rows = [...root.querySelectorAll('[aria-labelledby=refused] li')].map(({ textContent }) => textContent);
  expect(rows[0]).toMatch(/next attempt .*30[:.]09.*3 later messages of its report wait behind it\. The oldest is from/);
  expect(rows[1]).toContain('Nothing waits behind it.');
  expect([...root.querySelectorAll('[aria-labelledby=refused] a')].map((a) => a.getAttribute('href'))).toContain('/ops/messages/m1');
  expect(root.textContent).toContain('Nothing waits behind a failed message');
  await act(() => render(null, root));
});

test('an operator sees what the relay does, and who publishes which shard until when', async () => {
  const history = { since: '2026-11-22T07:30:00Z', step_seconds: 10, replicas: [], series: [] };
  const answers: Record<string, unknown> = { '/admin/outbox/history': history, '/admin/outbox/stats': outbox };
  serve(reportService, 'GET', (path) => ok(answers[path] ?? { messages: [] }));
  const root = document.createElement('div');
  await act(() => render(<Outbox />, root));
  for (let i = 0; i < 3; i++) await act(settled); // what is read, and what is read by what is then shown
  const states = Object.fromEntries(
    [...root.querySelectorAll('dl.states > div')].map((each) => [
      each.querySelector('dt')?.textContent,
      each.querySelector('dd')?.textContent,
    ]),
  );
  expect(states).toMatchObject({
    Broker: 'connected',
    'Shards it owns': '1',
    'Not confirmed yet': '5 of at most 512',
    'Blocked by the broker': '7 s in all',
    'Returned or refused': '3',
  });
  const leases = [...root.querySelectorAll('.leases tbody tr')].map((row) => [...row.children].map(({ textContent }) => textContent));
  expect(leases).toEqual([
    ['0', '11111111', expect.stringMatching(/30[:.]05/), '4', '12', '0'],
    ['1', 'nobody', '', '2', '0', '0'],
  ]);
  await act(() => render(null, root));
});
