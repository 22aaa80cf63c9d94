import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test } from 'vitest';

import { notificationService } from '../../api/client';
import { ok, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { Queues } from './queues';
import type { Reading } from './readings';

/** The queues as they are drawn from an answer of the service. */
async function draw(workers: object): Promise<HTMLElement> {
  serve(notificationService, 'GET', (path) =>
    ok(path === '/admin/workers/history' ? { since: '2026-11-22T07:30:00Z', step_seconds: 10, replicas: [], series: [] } : { items: [] }),
  );
  const root = document.createElement('div');
  document.body.replaceChildren(root);
  const reading = { workers: { items: [], waiting: [], findings: [], ...workers } } as unknown as Reading;
  await act(() => render(<Queues reading={reading} refresh={() => {}} />, root));
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

test('in a cluster, it is said which nodes have a queue, and which leads it', async () => {
  const pool = {
    elsewhere: true,
    depth: 0,
    consumers: 1,
    stalled: 0,
    rate_per_s: 0,
    error_rate: 0,
    concurrency: 4,
    prefetch: 10,
    paused: false,
  };
  const root = await draw({
    items: [
      {
        ...pool,
        queue: 'queue.vote_received',
        copies: { leader: 'city2', members: ['city1', 'city2', 'city3'], online: ['city1', 'city2'] },
      },
      { ...pool, queue: 'queue.status_updates', copies: { leader: '', members: ['city1', 'city2', 'city3'], online: [] } },
      { ...pool, queue: 'queue.report_created' },
    ],
  });
  const copies = [...root.querySelectorAll('.pools > li')].map((item) => [
    item.querySelector('.figure[data-warn=true]')?.textContent,
    item.querySelector('.quiet')?.textContent,
  ]);
  expect(copies).toEqual([
    ['Copies2 of 3', 'Led by city2; copies on city1, city2, city3'],
    ['Copies0 of 3', 'No node leads it; copies on city1, city2, city3'],
    [undefined, undefined],
  ]);
});
