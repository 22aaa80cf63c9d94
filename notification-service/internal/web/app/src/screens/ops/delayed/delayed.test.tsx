import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { notificationService, type DelayedMessage } from '../../../api/client';
import { ok, refused, serve } from '../../../testing/api';
import { settled } from '../../../testing/browser';
import { Delayed } from './delayed';

function message(part: Partial<DelayedMessage> = {}): DelayedMessage {
  return {
    queue: 'queue.vote_received',
    message_id: 'm1',
    type: 'report.vote.received',
    due_at: '2026-12-24T18:00:00Z',
    parked_at: '2026-11-22T04:00:00Z',
    properties: {},
    headers: {},
    body: {},
    ...part,
  };
}

let root: HTMLElement;
const show = async () => {
  await act(() => render(<Delayed />, root));
  await act(settled); // what it reads once it is there
};
const click = (name: string) =>
  act(async () => {
    [...root.querySelectorAll('button')].find((button) => button.textContent === name)!.click();
    await settled();
  });

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  // jsdom has no modal dialogs.
  HTMLDialogElement.prototype.showModal = vi.fn();
});

test('says when nothing waits', async () => {
  serve(notificationService, 'GET', () => ok({ items: [] }));
  await show();
  expect(root.querySelector('.empty')?.textContent).toBe('Nothing waits until a time.');
});

test('lists page after page', async () => {
  const get = serve(notificationService, 'GET', (_, { params }) =>
    params?.query?.cursor ? ok({ items: [message({ message_id: 'm2' })] }) : ok({ items: [message()], next_cursor: 'c1' }),
  );
  await show();
  expect(root.querySelectorAll('li')).toHaveLength(1);
  expect(root.querySelector('time')?.dateTime).toBe('2026-12-24T18:00:00Z');
  await click('Show more');
  await act(settled);
  expect([...root.querySelectorAll('code')].map((code) => code.textContent)).toEqual(['m1', 'm2']);
  expect(get.mock.calls.map(([, { params }]) => params?.query?.cursor)).toEqual([undefined, undefined, 'c1']);
});

test('releases a message, and says when it is gone already', async () => {
  serve(notificationService, 'GET', () => ok({ items: [message()] }));
  const post = serve(notificationService, 'POST', () => refused(404, 'not-found'));
  await show();
  await click('Send now');
  expect(post.mock.lastCall?.[1].params?.path).toEqual({ queue: 'queue.vote_received', message_id: 'm1' });
  expect(root.querySelector('[role=alert]')).not.toBeNull();
});

test('deletes a message with a reason', async () => {
  serve(notificationService, 'GET', () => ok({ items: [message()] }));
  const remove = serve(notificationService, 'DELETE', () => ok(undefined));
  await show();
  await click('Discard');
  await act(() => {
    const reason = root.querySelector<HTMLInputElement>('form input')!;
    reason.value = ' Not wanted any more ';
    reason.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await act(async () => {
    root.querySelector('form')!.requestSubmit();
    await settled();
  });
  expect(remove.mock.lastCall?.[1].params?.query).toEqual({ reason: 'Not wanted any more' });
  expect(root.querySelector('form')).toBeNull();
});
