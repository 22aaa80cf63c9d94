import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { notificationService } from '../../api/client';
import { ok, refused, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { Router } from '../../ui/router';
import { DeadLetters } from './dead-letters';
import type { Note } from './note';

const AT = '2026-11-22T07:30:00Z';
const note = (text: string, version: number): Note => ({ text, author: 'olga', written_at: AT, version });

let root: HTMLElement;
let now: Note | undefined;
const click = async (name: string) => {
  await act(async () => {
    [...root.querySelectorAll('button')].find(({ textContent }) => textContent.trim() === name)!.click();
    for (let i = 0; i < 3; i++) await settled();
  });
  await act(settled); // what is read again
};
const type = (text: string) =>
  act(() => {
    const field = root.querySelector('textarea')!;
    field.value = text;
    field.dispatchEvent(new Event('input', { bubbles: true }));
  });
const save = async () => {
  await act(async () => {
    root.querySelector('dialog form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
    for (let i = 0; i < 3; i++) await settled();
  });
  await act(settled);
};

beforeEach(async () => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  HTMLDialogElement.prototype.showModal = vi.fn(); // jsdom has no modal dialogs
  const cause = { queue: 'q', error_class: 'permanent', error_group: 'no such thing' };
  serve(notificationService, 'GET', (path) => {
    if (path === '/admin/dlq/stats') return ok({ items: [] });
    if (path === '/admin/dlq/messages') return ok({ items: [{ id: 7, ...cause, note: now }] });
    return ok({ items: [{ ...cause, open: 2, oldest: AT, newest: AT, note: now }] });
  });
});

const show = async () => {
  await act(() => render(<Router>{<DeadLetters path={[]} />}</Router>, root));
  await act(settled);
};

test('a note stands with its group, and the first one is written on none', async () => {
  now = undefined;
  const put = serve(notificationService, 'PUT', (_, { body }) => {
    now = note((body as { text: string }).text, 4);
    return ok(now);
  });
  await show();
  await click('Add a note');
  await type('wait until Monday');
  await save();
  expect(put.mock.lastCall?.[1].params).toMatchObject({ query: { queue: 'q' }, header: { 'If-Match': '"0"' } });
  expect(root.querySelector('.rows .note')?.textContent).toMatch(/wait until Monday.*by olga/);
});

test('who writes at the same time keeps what they typed, and sees what the other wrote', async () => {
  now = note('the broker was moved', 4);
  const put = serve(notificationService, 'PUT', (_, { params, body }) => {
    if (params?.header?.['If-Match'] !== `"${now?.version}"`) return refused(412, 'stale-version');
    return ok((now = note((body as { text: string }).text, 6)));
  });
  await show();
  await click('Edit the note');
  await type('mine');
  now = note('theirs', 5);
  await save();
  expect(root.querySelector('dialog')?.textContent).toContain('theirs');
  expect(root.querySelector('textarea')?.value).toBe('mine');
  await save();
  expect(put).toHaveBeenCalledTimes(2);
  expect(now).toMatchObject({ text: 'mine', version: 6 });
});

test('a note is removed at the version that was seen', async () => {
  now = note('the broker was moved', 4);
  const remove = serve(notificationService, 'DELETE', () => {
    now = undefined;
    return ok(undefined);
  });
  await show();
  await click('Edit the note');
  await click('Remove');
  expect(remove.mock.lastCall?.[1].params?.header).toEqual({ 'If-Match': '"4"' });
  expect(root.querySelector('.rows .note')).toBeNull();
});
