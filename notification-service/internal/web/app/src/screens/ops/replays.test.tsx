import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test } from 'vitest';

import { notificationService, type Replay } from '../../api/client';
import { ok, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { Replays } from './replays';

test('a replay that has nothing left to send cannot go on', async () => {
  const replay = (id: string, state: Replay['state'], pending: number, in_flight = 0) => ({
    id,
    state,
    total: 10,
    resolved: 0,
    failed: 10 - pending - in_flight,
    pending,
    in_flight,
    created_at: '2026-11-22T07:30:00Z',
  });
  const items = [
    replay('1', 'stopped', 7),
    replay('2', 'stopped', 0),
    replay('3', 'paused', 0, 2),
    replay('4', 'running', 5),
    replay('5', 'done', 0),
  ];
  serve(notificationService, 'GET', () => ok({ items }));
  const root = document.createElement('div');
  await act(() => render(<Replays />, root));
  await act(settled);
  const offered = [...root.querySelectorAll('li')].map((row) => [...row.querySelectorAll('button')].map(({ textContent }) => textContent));
  expect(offered).toEqual([['Resume', 'Cancel'], ['Cancel'], ['Resume', 'Cancel'], ['Pause', 'Cancel'], []]);
  await act(() => render(null, root));
});
