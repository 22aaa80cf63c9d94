import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { notificationService, reportService, type MissingMessage, type ReconciliationGroup } from '../../../api/client';
import { ok, refused, serve } from '../../../testing/api';
import { settled } from '../../../testing/browser';
import '../../../testing/unmount';
import { readFound } from './missing';
import { Reconciliation } from './reconciliation';

const group = (name: string, part: Partial<ReconciliationGroup> = {}): ReconciliationGroup => ({
  group: name,
  missing: 0,
  unknown: 0,
  awaited: 0,
  gap: 0,
  late_seconds: 40,
  compared_until: '2026-11-27T09:00:00Z',
  ...part,
});

const message = (n: number, state: MissingMessage['state'] = 'missing'): MissingMessage => ({
  message_id: `0198c0de-0000-7000-8000-${String(n).padStart(12, '0')}`,
  group: 'notifications',
  state,
  routing_key: 'report.created',
  published_from: '2026-11-27T09:00:00Z',
  published_until: '2026-11-27T09:01:00Z',
});

beforeEach(() => {
  vi.restoreAllMocks();
  HTMLDialogElement.prototype.showModal = vi.fn(); // jsdom has none
});

/** Lets notification-service have found out this; the photos are all there. */
function tell(groups: ReconciliationGroup[], pages: MissingMessage[][]) {
  serve(reportService, 'GET', (path) => ok(path.endsWith('/messages') ? { messages: [] } : { groups: [group('photos')] }));
  serve(notificationService, 'GET', (path, { params }) => {
    if (!path.endsWith('/messages')) return ok({ groups });
    const page = Number(params?.query?.cursor ?? 0);
    return ok({
      messages: pages[page]?.slice(0, Number(params?.query?.limit)),
      ...(page + 1 < pages.length && { next_cursor: `${page + 1}` }),
    });
  });
  const requests: { message_ids: string[]; reason: string }[] = [];
  serve(reportService, 'POST', (_, { body }) => {
    const request = body as (typeof requests)[number];
    requests.push(request);
    return ok({ republished: request.message_ids.length - 1, unpublished: 0, gone: 1 });
  });
  return requests;
}

async function shown(): Promise<HTMLElement> {
  const root = document.createElement('div');
  document.body.append(root);
  await act(() => render(<Reconciliation />, root));
  for (let i = 0; i < 3; i++) await act(settled);
  return root;
}

const button = (name: string) => [...document.querySelectorAll('button')].find((each) => each.textContent === name)!;

/** Gives the reason and sends the form. */
async function confirm() {
  const reason = document.querySelector<HTMLInputElement>('dialog input')!;
  await act(() => {
    reason.value = 'a queue was purged';
    reason.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await act(() => void document.querySelector('dialog form')!.dispatchEvent(new Event('submit', { cancelable: true })));
  for (let i = 0; i < 4; i++) await act(settled);
}

test('a message that got lost leads to its story, and is published again', async () => {
  const requests = tell([group('notifications', { missing: 1 })], [[message(1)]]);
  const root = await shown();
  expect([...root.querySelectorAll('h3')].map(({ textContent }) => textContent)).toEqual([
    'Messages that were not found',
    'notifications',
    'photos',
  ]);
  expect(root.querySelector<HTMLAnchorElement>('.rows a')!.href).toContain(`ops/messages/${message(1).message_id}`);
  await act(() => button('Publish again').click());
  await confirm();
  expect(requests).toEqual([{ message_ids: [message(1).message_id], reason: 'a queue was purged' }]);
  expect(root.querySelector('[role=status]')!.textContent).toBe(
    'Published again: 0. The next comparison looks for them. No longer in the outbox: 1.',
  );
});

test('all that a group lost are published again, from every page, without those on their way', async () => {
  const first = Array.from({ length: 500 }, (_, n) => message(n));
  const requests = tell(
    [group('notifications', { missing: 500, unknown: 1, awaited: 1 })],
    [first, [message(600, 'waiting'), message(601, 'unknown')]],
  );
  await shown();
  await act(() => button('Publish all of notifications again').click());
  await confirm();
  expect(requests.map(({ message_ids }) => message_ids.length)).toEqual([500, 1]);
  expect(requests[1]!.message_ids).toEqual([message(601).message_id]);
  expect(document.querySelector('[role=status]')!.textContent).toContain('Published again: 499.');
});

test('the group waits no longer for what the outbox does not have, but for what may be on its way', async () => {
  const groups = [group('notifications', { missing: 1, awaited: 1 })];
  tell(groups, [[message(1), message(2, 'waiting')]]);
  const requests: unknown[] = [];
  serve(notificationService, 'POST', (path, { body }) => {
    requests.push([path, body]);
    return ok({ closed: 1 });
  });
  const root = await shown();
  expect([...root.querySelectorAll('.rows button')].filter((each) => each.textContent === 'Wait no longer')).toHaveLength(1);
  for (const name of ['Wait no longer', 'Wait no longer for any of notifications']) {
    await act(() => button(name).click());
    await confirm();
    expect(requests.pop()).toEqual([
      '/admin/notifications/reconciliation/messages/close',
      { group: 'notifications', message_ids: [message(1).message_id], reason: 'a queue was purged' },
    ]);
    expect(root.querySelector('[role=status]')!.textContent).toBe('No longer waited for: 1.');
  }
});

test('where everything arrived there is nothing to do', async () => {
  tell([group('notifications')], [[]]);
  const root = await shown();
  expect(root.textContent).toContain('Everything was found.');
  expect(button('Publish again')).toBeUndefined();
});

test('a service that does not answer takes nothing from the other', async () => {
  tell([group('notifications', { missing: 1 })], [[message(1)]]);
  serve(reportService, 'GET', () => refused(503, 'unavailable'));
  const found = await readFound();
  expect(found.messages).toHaveLength(1);
  expect(found.errors).toHaveLength(1);
  serve(notificationService, 'GET', () => refused(503, 'unavailable'));
  await expect(readFound()).rejects.toThrow();
});
