import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test } from 'vitest';

import { notificationService, type Replay } from '../../api/client';
import { session } from '../../state/session';
import { ok, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { Replays } from './replays';

const replay = (id: string, state: Replay['state'], part: Partial<Replay> = {}) => ({
  id,
  state,
  selection: { queue: 'queue.vote_received', error_group: 'recipient header is missing' },
  total: 10,
  resolved: 0,
  failed: 0,
  pending: 0,
  in_flight: 0,
  created_at: '2026-11-22T07:30:00Z',
  ...part,
});

async function show(items: object[]) {
  serve(notificationService, 'GET', () => ok({ items }));
  const root = document.createElement('div');
  document.body.replaceChildren(root);
  await act(() => render(<Replays />, root));
  await act(settled);
  return [...root.querySelectorAll('li')];
}

test('nothing is offered for a replay that has ended, and none goes on that has nothing left to send', async () => {
  const rows = await show([
    replay('1', 'stopped', { failed: 3 }),
    replay('2', 'paused', { pending: 2 }),
    replay('3', 'paused', { resolved: 10 }),
    replay('4', 'running', { pending: 5 }),
    replay('5', 'done', { resolved: 10 }),
  ]);
  const offered = rows.map((row) => [...row.querySelectorAll('button')].map(({ textContent }) => textContent));
  expect(offered).toEqual([[], ['Resume', 'Cancel'], ['Cancel'], ['Pause', 'Cancel'], []]);
});

test('a replay says what it was about, who began it and what came of it, and leads to its messages', async () => {
  session.value = { sub: 'oskar', name: 'Oskar', role: 'operator', expires_at: '2030-01-01T00:00:00Z' };
  const reason = 'the canary failed: the cause is still there';
  const [group, chosen] = await show([
    replay('r1', 'stopped', { failed: 5, actor: 'oskar', reason }),
    replay('r2', 'done', {
      selection: { ids: [1, 2] } as never,
      causes: ['body is not valid JSON at byte N'],
      queues: ['queue.status_updates'],
      resolved: 8,
      failed: 2,
      actor: 'pavel',
    }),
  ]);
  for (const said of ['recipient header is missing', 'queue.vote_received', 'by you', '5 came back', '5 not sent', 'The canary failed'])
    expect(group?.textContent).toContain(said);
  for (const said of ['body is not valid JSON', 'queue.status_updates', 'by pavel']) expect(chosen?.textContent).toContain(said);
  // The bar is of what succeeded: nothing, and most.
  expect([group, chosen].map((row) => row?.querySelector('progress')?.value)).toEqual([0, 8]);
  expect(group?.querySelector('a')?.getAttribute('href')).toBe('/ops/dead-letters?state=all&replay_id=r1');
});
