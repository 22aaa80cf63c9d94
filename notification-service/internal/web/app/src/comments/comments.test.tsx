import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { notificationService, reportService, type Comment } from '../api/client';
import { scope } from '../state/scope';
import { session, type Session } from '../state/session';
import { lightsAlone, ok, refused, report, serve, wholeCity } from '../testing/api';
import { settled } from '../testing/browser';
import { Comments } from './comments';
import { commentOn, writeComment } from './state';

let root: HTMLElement;
const shown = () => root.textContent;
const button = (name: string) => [...root.querySelectorAll('button')].find(({ textContent }) => textContent === name);
const choice = (name: string) =>
  [...root.querySelectorAll('label')].find(({ textContent }) => textContent === name)?.querySelector('input');
const type = (text: string) =>
  act(() => {
    const field = root.querySelector('textarea')!;
    field.value = text;
    field.dispatchEvent(new Event('input', { bubbles: true }));
  });
const submit = () =>
  act(async () => {
    root.querySelector('form')!.requestSubmit();
    await settled();
  });
const open = async (of = report()) => {
  await act(() => render(<Comments report={of} />, root)); // which begins to load
  await act(settled);
};

const comment = (part: Partial<Comment> = {}): Comment => ({
  id: 'c1',
  text: 'Dark again',
  anonymous: true,
  mine: false,
  created_at: '2026-01-01T12:00:00Z',
  ...part,
});
const list = (...comments: Comment[]) => ok({ comments, count: comments.filter(({ hidden_reason }) => !hidden_reason).length });
const signIn = (role: Session['role']) => {
  const user = { sub: 'ann', name: 'Ann', role, expires_at: '2030-01-01T00:00:00Z' };
  session.value = user;
  serve(notificationService, 'GET', () => ok(user));
};

beforeEach(() => {
  HTMLDialogElement.prototype.showModal = vi.fn(); // jsdom has none
  root = document.createElement('div');
  document.body.append(root);
  session.value = undefined;
});

test('everybody reads who wrote what, and where to sign in', async () => {
  serve(reportService, 'GET', () => list(comment(), comment({ id: 'c2', anonymous: false, author_name: 'Bob', text: 'Here, too' })));
  await open();
  expect(root.querySelector('h2')?.textContent).toBe('2 comments');
  expect([...root.querySelectorAll('li strong')].map(({ textContent }) => textContent)).toEqual(['Anonymous', 'Bob']);
  expect([root.querySelector('form'), button('Hide the comment')]).toEqual([null, undefined]);
  expect(shown()).toContain('Sign in to comment');
});

test('what one writes is sent once, and kept until it is there', async () => {
  signIn('resident');
  const get = serve(reportService, 'GET', () => list());
  let fails = true;
  const post = serve(reportService, 'POST', () => (fails ? refused(503, 'unavailable') : ok(comment({ mine: true }))));
  await open();
  await type('Dark again');
  expect(shown()).toContain('990 characters left');
  expect([choice('With my name')?.checked, choice('Anonymous')?.checked]).toEqual([false, false]);
  await act(() => choice('Anonymous')!.click());
  await submit();
  expect(root.querySelector('textarea')?.value).toBe('Dark again');
  expect(root.querySelector('[role=alert]')).not.toBeNull();

  fails = false;
  get.mockImplementation(async () => list(comment({ mine: true })));
  await submit();
  const sent = post.mock.calls.map(([, options]) => options as { body: unknown; params: { header: Record<string, string> } });
  expect(sent.map(({ body }) => body)).toEqual(Array(2).fill({ text: 'Dark again', anonymous: true }));
  expect(sent[0]?.params.header['Idempotency-Key']).toBe(sent[1]?.params.header['Idempotency-Key']);
  expect([root.querySelector('textarea')?.value, commentOn('r1').text]).toEqual(['', '']);
  expect(shown()).toContain('Written by you');
});

test('what was changed is another comment', () => {
  writeComment('r1', { text: 'Dark' });
  const { key } = commentOn('r1');
  writeComment('r1', { text: 'Dark again' });
  expect(commentOn('r1').key).not.toBe(key);
});

test('a reporter who filed anonymously is warned that a name would give them away', async () => {
  signIn('resident');
  serve(reportService, 'GET', () => list());
  await open(report({ mine: true, privacy_level: 'anonymous' }));
  await act(() => choice('Anonymous')!.click());
  expect(shown()).not.toContain('people may guess');
  await act(() => choice('With my name')!.click());
  expect(shown()).toContain('people may guess');
});

test('an official of departments hides none', async () => {
  signIn('official');
  scope.value = lightsAlone;
  serve(reportService, 'GET', () => list(comment(), comment({ id: 'c2', hidden_reason: 'A name' })));
  await open();
  expect(root.querySelector('li button')).toBeNull();
});

test('an official hides one with a reason, and shows it again', async () => {
  signIn('official');
  scope.value = wholeCity;
  const get = serve(reportService, 'GET', () => list(comment()));
  const put = serve(reportService, 'PUT', () => ok(undefined));
  const remove = serve(reportService, 'DELETE', () => ok(undefined));
  await open();
  expect(root.querySelector('form')).toBeNull();
  await act(() => button('Hide the comment')!.click());
  await act(() => {
    const field = root.querySelector<HTMLInputElement>('dialog input')!;
    field.value = 'A name';
    field.dispatchEvent(new Event('input', { bubbles: true }));
  });
  get.mockImplementation(async () => list(comment({ hidden_reason: 'A name' })));
  await submit();
  expect(put.mock.calls[0]?.[1]).toMatchObject({ params: { path: { id: 'r1', comment_id: 'c1' } }, body: { reason: 'A name' } });
  expect(shown()).toContain('0 comments');
  expect(shown()).toContain('A name');
  await act(async () => {
    button('Show again')!.click();
    await settled();
  });
  expect(remove).toHaveBeenCalledOnce();
});
