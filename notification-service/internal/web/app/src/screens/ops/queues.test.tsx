import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test } from 'vitest';

import { notificationService } from '../../api/client';
import { ok, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { Queues } from './queues';

/** The queues as they are drawn from an answer of the service. */
async function draw(workers: object): Promise<HTMLElement> {
  const answers: Record<string, unknown> = {
    '/admin/workers': { items: [], waiting: [], findings: [], nodes: [], ...workers },
    '/admin/workers/history': {
      since: '2026-11-22T07:30:00Z',
      step_seconds: 10,
      replicas: [1, 1],
      series: [{ name: 'depth', queue: 'queue.vote_received', runs: [{ from: 0, values: [0, 7] }] }],
    },
  };
  serve(notificationService, 'GET', (path) => ok(answers[path] ?? { items: [] }));
  const root = document.createElement('div');
  document.body.replaceChildren(root);
  await act(() => render(<Queues />, root));
  await act(settled);
  return root;
}

test('retry queues and dead-letter queues stand beside the queues', async () => {
  const waiting = [
    { queue: 'cityconnect.retry.5s', delay_s: 5, depth: 3 },
    { queue: 'queue.vote_received.dlq', of: 'queue.vote_received', depth: 1 },
  ];
  const root = await draw({ waiting });
  const states = [...root.querySelectorAll('section[aria-labelledby=waiting-queues] dl > div')];
  expect(states.map(({ textContent }) => textContent)).toEqual([
    'Another attempt after 5 s3',
    'Dead letters of queue.vote_received, until they are archived1',
  ]);
});

const pool = {
  elsewhere: false,
  depth: 0,
  consumers: 1,
  stalled: 0,
  rate_per_s: 0,
  error_rate: 0,
  handler_p99_ms: 0,
  concurrency: 4,
  prefetch: 10,
  paused: false,
};

/** Opens the row of a queue. */
const open = (root: HTMLElement, queue: string) =>
  act(() => [...root.querySelectorAll<HTMLElement>('th button')].find(({ textContent }) => textContent === queue)!.click());

test('in a cluster, it is said which nodes have a queue, and which leads it', async () => {
  const members = ['city1', 'city2', 'city3'];
  const root = await draw({
    items: [
      { ...pool, queue: 'queue.vote_received', copies: { leader: 'city2', members, online: ['city1', 'city2'] } },
      { ...pool, queue: 'queue.status_updates', copies: { leader: '', members, online: [] } },
      { ...pool, queue: 'queue.report_created' },
    ],
  });
  expect([...root.querySelectorAll('th[scope=row]')].map((name) => name.querySelector('.warn')?.textContent.trim())).toEqual([
    '2 of 3',
    '0 of 3',
    undefined,
  ]);
  await open(root, 'queue.vote_received');
  expect(root.querySelector('.opened .quiet')?.textContent).toBe('Led by city2; copies on city1, city2, city3');
  await open(root, 'queue.status_updates');
  expect(root.querySelectorAll('.opened')).toHaveLength(1);
  expect(root.querySelector('.opened .quiet')?.textContent).toBe('No node leads it; copies on city1, city2, city3');
});

test('all queues stand in one table, and an idle one has no figures', async () => {
  const busy = { ...pool, queue: 'queue.vote_received', depth: 7, rate_per_s: 1.25, error_rate: 0.5, handler_p99_ms: 40, consumers: 0 };
  const root = await draw({ items: [busy, { ...pool, queue: 'queue.report_created', paused: true, consumers: 0 }] });
  const rows = [...root.querySelectorAll('.pools tbody tr')].map((row) => [...row.children].map(({ textContent }) => textContent.trim()));
  expect(rows).toEqual([
    ['queue.vote_received', '7', '1.3/s', '50 %', '40 ms', '0'],
    ['queue.report_created', '–', '–', '–', '–', 'paused'],
  ]);
  expect([...root.querySelectorAll('[data-warn=true]')].map(({ textContent }) => textContent)).toEqual(['50 %', '0']);
  expect(root.querySelector('.spark[aria-label="Messages waiting, queue.vote_received"] path')?.getAttribute('d')).toContain('L');
});

test('nodes of the broker stand with their alarms, where they are seen', async () => {
  const node = {
    running: true,
    memory_used: 2 ** 29,
    memory_limit: 2 ** 30,
    memory_alarm: false,
    disk_free: 2 ** 30,
    disk_limit: 2 ** 31,
    disk_alarm: true,
  };
  const root = await draw({
    nodes: [
      { ...node, name: 'a' },
      { ...node, name: 'b', running: false, disk_alarm: false },
    ],
  });
  const rows = [...root.querySelectorAll('section[aria-labelledby=broker-nodes] tbody tr')];
  expect(rows.map(({ textContent }) => textContent.trim())).toEqual([
    'a 0.5 GiB used, alarm from 1 GiB 1 GiB free, alarm below 2 GiB Alarm',
    'b does not run',
  ]);
  expect((await draw({})).querySelector('[aria-labelledby=broker-nodes]')).toBeNull();
});
