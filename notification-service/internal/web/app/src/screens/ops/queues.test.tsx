import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test } from 'vitest';

import { notificationService } from '../../api/client';
import { ok, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { Queues } from './queues';
import type { Reading } from './readings';

test('retry queues and dead-letter queues stand beside the queues', async () => {
  serve(notificationService, 'GET', (path) =>
    ok(path === '/admin/workers/history' ? { since: '2026-11-22T07:30:00Z', step_seconds: 10, replicas: [], series: [] } : { items: [] }),
  );
  const waiting = [
    { queue: 'cityconnect.retry.5s', delay_s: 5, depth: 3 },
    { queue: 'queue.vote_received.dlq', of: 'queue.vote_received', depth: 1 },
  ];
  const root = document.createElement('div');
  document.body.replaceChildren(root);
  const reading = { workers: { items: [], waiting, findings: [] } } as unknown as Reading;
  await act(() => render(<Queues reading={reading} refresh={() => {}} />, root));
  await act(settled);
  const states = [...root.querySelectorAll('section[aria-labelledby=between] dl > div')];
  expect(states.map(({ textContent }) => textContent)).toEqual([
    'Another attempt after 5 s3',
    'Dead letters of queue.vote_received, until they are archived1',
  ]);
});
