import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { notificationService } from '../../api/client';
import { ok, refused, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { route, Router } from '../../ui/router';
import { DeadLetterList, Search } from './dead-letter-list';

const letter = (id: number, state = 'open') => ({
  id,
  queue: 'queue.vote_received',
  message_id: `m${id}`,
  type: 'report.vote.received',
  error_class: 'permanent',
  error: 'no such thing',
  state,
  failed_at: '2026-11-22T07:30:00Z',
  body: {},
});

let root: HTMLElement;
const boxes = () => [...root.querySelectorAll<HTMLInputElement>('li input[type=checkbox]')];
const button = (name: string) => [...root.querySelectorAll('button')].find(({ textContent }) => textContent.trim() === name)!;

beforeEach(async () => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  HTMLDialogElement.prototype.showModal = vi.fn(); // jsdom has no modal dialogs
  serve(notificationService, 'GET', () => ok({ items: [letter(9), letter(8, 'resolved'), letter(7), letter(6)] }));
  await act(() => render(<DeadLetterList />, root));
  await act(settled);
});

test('only what is open can be chosen, and nothing else is replayed', async () => {
  expect(boxes()).toHaveLength(3);
  expect(button('Replay').disabled).toBe(true);
  await act(() => boxes()[0]!.click());
  await act(() => boxes()[2]!.click());
  expect(root.textContent).toContain('2 chosen');
  const post = serve(notificationService, 'POST', () => refused(500, 'internal'));
  await act(() => button('Replay').click());
  await act(() => void root.querySelector('dialog form')!.dispatchEvent(new Event('submit', { cancelable: true })));
  expect(post.mock.calls[0]?.[1]).toMatchObject({ body: { selection: { ids: [9, 6] } } });
});

test('all that is shown is chosen, and what was discarded is chosen no longer', async () => {
  await act(() => root.querySelector<HTMLInputElement>('.chosen input')!.click());
  expect(root.textContent).toContain('3 chosen');
  const post = serve(notificationService, 'POST', () => ok({ discarded: 3 }));
  await act(() => button('Discard').click());
  const reason = root.querySelector<HTMLInputElement>('dialog input')!;
  reason.value = 'a test';
  await act(() => void reason.dispatchEvent(new Event('input', { bubbles: true })));
  await act(() => void root.querySelector('dialog form')!.dispatchEvent(new Event('submit', { cancelable: true })));
  await act(settled);
  expect(post.mock.calls[0]?.[1]).toMatchObject({ body: { selection: { ids: [9, 7, 6] }, reason: 'a test' } });
  expect(root.textContent).toContain('Choose all shown');
});

test('what is searched for is in the address, with times of the reader’s clock', async () => {
  await act(() =>
    render(
      <Router>
        <Search query={{ queue: 'queue.vote_received' }} />
      </Router>,
      root,
    ),
  );
  const fill = (name: string, value: string) => (root.querySelector<HTMLInputElement>(`[name=${name}]`)!.value = value);
  fill('text', ' m7 ');
  fill('from', '2026-11-22T07:30');
  await act(() => void root.querySelector('form')!.dispatchEvent(new Event('submit', { cancelable: true })));
  expect([location.pathname, Object.fromEntries(route.value.query)]).toEqual([
    '/ops/dead-letters',
    { queue: 'queue.vote_received', state: 'all', text: 'm7', from: new Date('2026-11-22T07:30').toISOString() },
  ]);
});
