import { expect, test } from 'vitest';

import type { OutboxStats, WorkerPool } from '../../api/client';
import { lightsOf, type State } from './overview';
import type { Reading } from './readings';

const relay: OutboxStats['relay'] = {
  id: '00000000-0000-0000-0000-000000000000',
  connected: true,
  shards: 16,
  lease_valid: true,
  in_flight: 0,
  window: 512,
  open_circuits: {},
  published_per_s: 0,
  confirm_p50_ms: 0,
  confirm_p99_ms: 0,
  returned: 0,
  nacked: 0,
  connects: 1,
  blocked_seconds: 0,
};
const outbox: OutboxStats = { pending: 0, delayed: 0, failed: 0, oldest_pending_seconds: 0, replicas: 1, shards: [], relay };
const pool: WorkerPool = {
  queue: 'queue.vote_received',
  elsewhere: false,
  type: 'report.vote.received',
  concurrency: 1,
  prefetch: 10,
  paused: false,
  depth: 0,
  consumers: 1,
  workers: 1,
  stalled: 0,
  rate_per_s: 0,
  error_rate: 0,
  handler_p50_ms: 0,
  handler_p99_ms: 0,
};
const well: Reading = { workers: { items: [pool], waiting: [], findings: [] }, outbox, open: 0 };

const states = (reading: Reading, live = true) => Object.fromEntries(lightsOf(reading, live).map(({ part, state }) => [part, state]));
const good: Record<string, State> = { relay: 'good', broker: 'good', consumers: 'good', dead: 'good', outbox: 'good', stream: 'good' };

test('all is well', () => {
  expect(states(well)).toEqual(good);
});

test.each<[string, Partial<Reading>, Record<string, State>]>([
  ['a dead letter', { open: 1 }, { dead: 'bad' }],
  ['a failed message', { outbox: { ...outbox, failed: 1 } }, { outbox: 'bad' }],
  ['a late message', { outbox: { ...outbox, oldest_pending_seconds: 11 } }, { outbox: 'look' }],
  ['a relay without the broker', { outbox: { ...outbox, relay: { ...relay, connected: false } } }, { relay: 'bad' }],
  ['a broker that takes nothing', { outbox: { ...outbox, relay: { ...relay, blocked: 'memory' } } }, { relay: 'bad' }],
  ['a queue that is missing', { outbox: { ...outbox, relay: { ...relay, open_circuits: { vote: 'no queue' } } } }, { relay: 'bad' }],
  ['a queue without consumers', { workers: { items: [{ ...pool, consumers: 0 }], waiting: [], findings: [] } }, { consumers: 'bad' }],
  ['a paused queue', { workers: { items: [{ ...pool, consumers: 0, paused: true }], waiting: [], findings: [] } }, { consumers: 'look' }],
  ['a stalled worker', { workers: { items: [{ ...pool, stalled: 1 }], waiting: [], findings: [] } }, { consumers: 'bad' }],
  ['another topology', { workers: { items: [pool], waiting: [], findings: [{ what: 'a', remedy: 'b' }] } }, { broker: 'look' }],
])('%s is seen', (_, part, want) => {
  expect(states({ ...well, ...part })).toEqual({ ...good, ...want });
});

test('what did not answer is unknown, and not good', () => {
  expect(states({}, false)).toEqual({
    relay: 'unknown',
    broker: 'unknown',
    consumers: 'unknown',
    dead: 'unknown',
    outbox: 'unknown',
    stream: 'look',
  });
});
