import { expect, test } from 'vitest';

import type { HealthPart } from '../../api/client';
import type { Health, Source } from './health';
import { causesOf, lightsOf, type LightName, type State } from './lights';

const SINCE = '2026-11-22T21:24:00Z';
const READ = '2026-11-22T21:30:00Z';

const part = (name: HealthPart['name'], state: HealthPart['state'] = 'good', more: Partial<HealthPart> = {}): HealthPart => ({
  name,
  state,
  names: [],
  count: 0,
  since: SINCE,
  read_at: READ,
  ...more,
});

const source = (names: HealthPart['name'][], ...changed: HealthPart[]): Source => ({
  parts: names.map((name) => changed.find((each) => each.name === name) ?? part(name)),
  answeredAt: Date.parse(READ),
});
const reports = (...changed: HealthPart[]) =>
  source(['database', 'broker', 'relay', 'outbox', 'photos', 'reconciliation', 'jobs'], ...changed);
const notifications = (...changed: HealthPart[]) =>
  source(
    ['database', 'broker', 'consumers', 'dead_letters', 'mail', 'push', 'webhooks', 'back_office', 'reconciliation', 'jobs'],
    ...changed,
  );
const well: Health = { reports: reports(), notifications: notifications() };

/** The lights that are not good, and what each says. */
const wrong = (health: Health) =>
  Object.fromEntries(lightsOf(health).flatMap(({ name, state, causes }) => (state === 'good' ? [] : [[name, [state, ...causes]]])));

test('all is well only once everything was read', () => {
  expect(lightsOf(well)).toHaveLength(15);
  expect(wrong(well)).toEqual({});
  expect(lightsOf({ reports: {}, notifications: {} })).toEqual([]);
  expect(lightsOf({ ...well, reports: {} })).toEqual([]);
});

const unknown = (name: HealthPart['name'], cause: string) => part(name, 'unknown', { cause });

test.each<[string, Health, Partial<Record<LightName, [State, ...string[]]>>]>([
  [
    'an endpoint that has failed for half of the time',
    { reports: reports(), notifications: notifications(part('webhooks', 'warning', { cause: 'disabling', names: ['Work orders'] })) },
    { webhooks: ['warning', 'Half of the time after which it is disabled has passed without a success: Work orders'] },
  ],
  [
    'the database of notifications',
    {
      reports: reports(),
      notifications: notifications(
        part('database', 'bad', { cause: 'refused' }),
        part('consumers', 'bad', { cause: 'database' }),
        unknown('dead_letters', 'database'),
        unknown('jobs', 'database'),
      ),
    },
    {
      'notifications-database': ['bad', 'PostgreSQL of notifications refuses connections.'],
      consumers: ['bad', 'They handle nothing: PostgreSQL of notifications does not answer.'],
      dead: ['unknown', 'PostgreSQL of notifications does not answer, so this cannot be read.'],
      jobs: ['unknown', 'PostgreSQL of notifications does not answer, so this cannot be read.'],
    },
  ],
  [
    'the broker',
    {
      reports: reports(
        part('broker', 'bad', { cause: 'timeout' }),
        part('relay', 'bad', { cause: 'disconnected' }),
        unknown('photos', 'broker'),
      ),
      notifications: notifications(part('broker', 'bad', { cause: 'refused' }), unknown('consumers', 'broker')),
    },
    {
      broker: ['bad', 'RabbitMQ does not answer in time.', 'RabbitMQ refuses connections.'],
      relay: ['bad', 'It has no connection to the broker.'],
      photos: ['unknown', 'RabbitMQ does not answer, so this cannot be read.'],
      consumers: ['unknown', 'RabbitMQ does not answer, so this cannot be read.'],
    },
  ],
  [
    'one message of a group',
    {
      reports: reports(),
      notifications: notifications(part('reconciliation', 'bad', { cause: 'missing', names: ['webhooks'], count: 1 })),
    },
    { reconciliation: ['bad', '1 published message did not reach webhooks.'] },
  ],
  [
    'photo-worker',
    { reports: reports(part('photos', 'bad', { cause: 'stopped', names: ['photo-worker'] })), notifications: notifications() },
    { photos: ['bad', 'photo-worker does not run.'] },
  ],
  [
    'messages of a group',
    {
      reports: reports(part('reconciliation', 'warning', { cause: 'late', names: ['photos'] })),
      notifications: notifications(part('reconciliation', 'bad', { cause: 'missing', names: ['notifications', 'webhooks'], count: 3 })),
    },
    {
      reconciliation: [
        'bad',
        'photos has had nothing to compare for more than five minutes.',
        '3 published messages did not reach notifications, webhooks.',
      ],
    },
  ],
  [
    'a job of each service',
    {
      reports: reports(part('jobs', 'bad', { cause: 'failed', names: ['retention'] })),
      notifications: notifications(part('jobs', 'warning', { cause: 'paused', names: ['digests_odd'] })),
    },
    { jobs: ['bad', 'Failed: retention', 'Paused: digests_odd'] },
  ],
  [
    'report-service behind the gateway',
    { reports: { ...reports(), missing: { since: Date.parse(SINCE), how: 'gateway' } }, notifications: notifications() },
    {
      gateway: ['bad', 'It reaches no replica of report-service.'],
      'reports-database': ['unknown', 'report-service does not answer.'],
      relay: ['unknown', 'report-service does not answer.'],
      outbox: ['unknown', 'report-service does not answer.'],
      photos: ['unknown', 'report-service does not answer.'],
      reconciliation: ['unknown', 'report-service does not answer.'],
      jobs: ['unknown', 'report-service does not answer.'],
    },
  ],
])('without %s no other light lies', (_, health, want) => expect(wrong(health)).toEqual(want));

test('where nothing answers, the gateway or the line is at fault', () => {
  const missing = { since: Date.parse(SINCE), how: 'network' as const };
  const lights = lightsOf({ reports: { ...reports(), missing }, notifications: { ...notifications(), missing } });
  expect(lights.filter(({ state }) => state === 'good')).toEqual([]);
  expect(lights[0]).toMatchObject({
    name: 'gateway',
    causes: ['No answer comes: the gateway is stopped, or this device is offline.'],
    since: new Date(SINCE),
    readAt: new Date(READ),
  });
});

test('what the city does not have has no light', () => {
  const health = { reports: reports(part('photos', 'off')), notifications: notifications(part('mail', 'off')) };
  const names = lightsOf(health).map(({ name }) => name);
  expect(names).not.toContain('photos');
  expect(names).not.toContain('mail');
});

test('a cause that this page does not know is repeated', () => {
  const health = { reports: reports(part('relay', 'bad', { cause: 'sideways', names: ['left'] })), notifications: notifications() };
  expect(wrong(health)).toEqual({ relay: ['bad', 'report-service says: sideways left'] });
});

test('the broker names its nodes while all is well, and those with an alarm', () => {
  const broker = (changed: HealthPart) =>
    lightsOf({ reports: reports(), notifications: notifications(changed) }).find(({ name }) => name === 'broker')!;
  expect(broker(part('broker', 'good', { names: ['a', 'b'], count: 2 })).causes).toEqual(['It answers.', 'Nodes without an alarm: a, b']);
  expect(broker(part('broker', 'bad', { cause: 'disk_alarm', names: ['b'], count: 1 }))).toMatchObject({
    state: 'bad',
    causes: ['The broker takes no messages: the disk of b is full.'],
  });
});

test('what needs a part that is away follows from it, and so does what says the same', () => {
  const causes = (health: Health) => causesOf(lightsOf(health)).map(({ light, follow }) => [light.name, ...follow.map(({ name }) => name)]);
  expect(causes(well)).toEqual([]);
  const away = part('database', 'bad', { cause: 'refused' });
  const consumers = part('consumers', 'bad', { cause: 'database' });
  const worker = (name: HealthPart['name']) => part(name, 'bad', { cause: 'stopped', names: ['delivery-worker'] });
  expect(
    causes({ reports: reports(), notifications: notifications(away, consumers, part('dead_letters', 'bad', { cause: 'open', count: 2 })) }),
  ).toEqual([['notifications-database', 'consumers'], ['dead']]);
  // One server of both.
  expect(causes({ reports: reports(away, unknown('outbox', 'database')), notifications: notifications(away, consumers) })).toEqual([
    ['reports-database', 'notifications-database', 'outbox', 'consumers'],
  ]);
  const relay = part('relay', 'bad', { cause: 'disconnected' });
  expect(
    causes({
      reports: reports(part('broker', 'bad', { cause: 'refused' }), relay),
      notifications: notifications(unknown('push', 'broker')),
    }),
  ).toEqual([['broker', 'relay', 'push']]);
  expect(causes({ reports: reports(relay), notifications: notifications(worker('mail'), worker('push')) })).toEqual([
    ['relay'],
    ['mail', 'push'],
  ]);
});
