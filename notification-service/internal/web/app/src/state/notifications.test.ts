import { beforeEach, describe, expect, test, vi } from 'vitest';

import { deferred, notification, ok, serve } from '../testing/api';
import type { StreamEvent } from '@cityconnect/stream/browser';

const live = vi.hoisted(() => ({
  mine: (_: StreamEvent) => {},
  changed: (_: 'session' | 'notifications') => {},
  startAt: vi.fn(),
  announceChange: vi.fn(),
}));
vi.mock('../live/live', () => ({
  onStream: (_: string, listener: typeof live.mine) => (live.mine = listener),
  onChange: (listener: typeof live.changed) => (live.changed = listener),
  startAt: live.startAt,
  announceChange: live.announceChange,
}));

type Notifications = typeof import('./notifications');
let page: Notifications;
let service: (typeof import('../api/client'))['notificationService'];
let toasts: (typeof import('./toasts'))['toasts'];

const begin = async () => {
  vi.resetModules();
  page = await import('./notifications');
  ({ notificationService: service } = await import('../api/client'));
  ({ toasts } = await import('./toasts'));
  page.subscribeToNotifications();
};
beforeEach(begin);

const listed = (numbers: number[], unread_count: number, last_event_id: string, next_cursor?: string) =>
  ok({
    notifications: numbers.map((n) => notification({ id: `n${n}` })),
    unread_count,
    last_event_id,
    only_own: false,
    ...(next_cursor && { next_cursor }),
  });
const arrives = (n: number, part = {}) =>
  live.mine({ type: 'notification', id: `v1.a.${n}`, data: notification({ id: `n${n}`, ...part }) });
const shown = () => page.notifications.value.map(({ id }) => id);

describe('what is unread', () => {
  test('is what the list says, and one more for each that comes', async () => {
    serve(service, 'GET', () => listed([2, 1], 1, 'v1.a.2'));
    await page.loadNotifications();
    expect([shown(), page.unread.value]).toEqual([['n2', 'n1'], 1]);
    expect(live.startAt).toHaveBeenCalledWith('v1.a.2');
    arrives(3);
    expect([shown(), page.unread.value]).toEqual([['n3', 'n2', 'n1'], 2]);
  });

  test('counts nothing twice that the list, or another tab, has counted', async () => {
    serve(service, 'GET', () => listed([2, 1], 2, 'v1.a.2'));
    await page.loadNotifications();
    arrives(2);
    arrives(3);
    arrives(3);
    expect([shown(), page.unread.value]).toEqual([['n3', 'n2', 'n1'], 3]);
    live.mine({ type: 'ready', id: 'v1.a.5', data: { unread_count: 5, last_event_id: 'v1.a.5' } });
    arrives(4);
    expect([shown()[0], page.unread.value]).toEqual(['n4', 5]);
  });

  test('counts what comes while the list is on its way', async () => {
    const answer = deferred<ReturnType<typeof ok>>();
    serve(service, 'GET', () => answer.promise);
    const loaded = page.loadNotifications();
    arrives(2); // the list was read before it
    arrives(1); // the list has it
    answer.resolve(listed([1], 1, 'v1.a.1'));
    await loaded;
    expect([shown(), page.unread.value]).toEqual([['n2', 'n1'], 2]);
  });

  test('is read again after a gap, and when another tab changed it', async () => {
    const get = serve(service, 'GET', () => listed([1], 0, 'v1.a.1'));
    live.mine({ type: 'reset', id: 'v1.b.1', data: {} });
    live.changed('notifications');
    live.changed('session');
    expect(get).toHaveBeenCalledTimes(2);
  });
});

describe('marking', () => {
  beforeEach(async () => {
    serve(service, 'GET', () => listed([3, 2, 1], 3, 'v1.a.3'));
    await page.loadNotifications();
    serve(service, 'PATCH', (_, { params, body }) => ok(notification({ id: String(params?.path?.id), ...(body as object) })));
  });

  test('changes the count by what it changed, and tells the other tabs', async () => {
    await page.mark(['n2', 'n1'], true);
    expect(page.unread.value).toBe(1);
    await page.mark(['n2'], true); // again
    expect(page.unread.value).toBe(1);
    await page.mark(['n2'], false);
    expect(page.unread.value).toBe(2);
    expect(live.announceChange).toHaveBeenCalledWith('notifications');
  });

  test('a report that is looked at marks its own alone', async () => {
    arrives(4, { report_id: 'r2' });
    await page.markReport('r2');
    expect(page.notifications.value.filter(({ read }) => read).map(({ id }) => id)).toEqual(['n4']);
    const patch = serve(service, 'PATCH', () => ok(notification()));
    await page.markReport('r2');
    expect(patch).not.toHaveBeenCalled();
  });

  test('all marks up to what is shown: what comes behind it stays unread', async () => {
    const post = serve(service, 'POST', () => ok(undefined));
    arrives(4);
    await page.markAll();
    expect(post.mock.lastCall?.[1].body).toEqual({ last_event_id: 'v1.a.4' });
  });
});

test('older ones are put behind, once, and no more than 200 are kept', async () => {
  serve(service, 'GET', (_, { params }) => (params?.query?.cursor ? listed([2, 1], 0, 'v1.a.9', 'c3') : listed([4, 3], 0, 'v1.a.9', 'c2')));
  await page.loadNotifications();
  await Promise.all([page.loadOlder(), page.loadOlder()]); // pressed twice
  expect(shown()).toEqual(['n4', 'n3', 'n2', 'n1']);
  for (let n = 10; n < 300; n++) arrives(n);
  expect(shown()).toHaveLength(200);
  expect(page.older.value).toBeUndefined();
});

test('what comes is announced while the page is looked at, and not twice', () => {
  arrives(1, { type: 'report.status.updated', status: 'resolved' });
  arrives(1, { type: 'report.status.updated', status: 'resolved' });
  expect(toasts.value.map(({ text }) => text)).toEqual(['Dark crossing: Now: Resolved']);
  arrives(3, { type: 'report.created', report_id: 'r3' });
  expect([toasts.value.length, page.unread.value]).toEqual([1, 2]); // the bell tells officials of new reports
  vi.spyOn(document, 'visibilityState', 'get').mockReturnValue('hidden');
  arrives(4, { report_id: 'r2' });
  expect(toasts.value).toHaveLength(1);
});

test('a comment is not announced where it is in sight', async () => {
  history.replaceState(null, '', '/reports/r1');
  await begin();
  history.replaceState(null, '', '/');
  arrives(1, { type: 'report.commented' });
  arrives(2, { type: 'report.commented', report_id: 'r2' });
  expect([toasts.value.map(({ href }) => href), page.unread.value]).toEqual([['/reports/r2'], 2]);
});

describe('a status that a later one has replaced', () => {
  const status = (n: number, report_version: number, part = {}) => ({
    id: `n${n}`,
    type: 'report.status.updated' as const,
    status: 'in_progress' as const,
    report_version,
    ...part,
  });

  test('is neither announced nor put above it', () => {
    const announced = () => toasts.value.map(({ text }) => text);
    arrives(1, { type: 'report.created', report_version: 1 });
    arrives(2, { report_version: 9 }); // a vote replaces no status
    arrives(3, status(3, 4, { status: 'resolved' }));
    expect([shown(), announced()]).toEqual([['n3', 'n2', 'n1'], ['Dark crossing: Now: Resolved']]);
    arrives(4, status(4, 3));
    expect([shown(), announced()]).toEqual([['n3', 'n4', 'n2', 'n1'], ['Dark crossing: Now: Resolved']]);
    arrives(5, status(5, 5));
    expect([shown(), announced()]).toEqual([['n5', 'n3', 'n4', 'n2', 'n1'], ['Dark crossing: Now: In progress']]);
    arrives(6, status(6, 2, { report_id: 'r2' }));
    expect([shown()[0], announced().length]).toEqual(['n6', 2]);
    expect(page.unread.value).toBe(6);
  });

  test('stands behind it also where the list has it first', async () => {
    const first = [status(4, 3), status(3, 4)];
    const second = [status(2, 5), status(1, 1)];
    serve(service, 'GET', (_, { params }) =>
      ok({
        notifications: (params?.query?.cursor ? second : first).map(notification),
        unread_count: 0,
        last_event_id: 'v1.a.4',
        only_own: false,
        next_cursor: 'c2',
      }),
    );
    await page.loadNotifications();
    expect(shown()).toEqual(['n3', 'n4']);
    await page.loadOlder();
    expect(shown()).toEqual(['n2', 'n3', 'n4', 'n1']);
  });
});

test('an official whom new reports do not concern is not told of them', async () => {
  const get = serve(service, 'GET', () => listed([], 0, 'v1.a.1'));
  const put = serve(service, 'PUT', () => ok({ unread_count: 0 }));
  get.mockImplementation(async () => ok({ notifications: [], unread_count: 0, last_event_id: 'v1.a.1', only_own: true }));
  await page.setOnlyOwn(true);
  expect(put.mock.lastCall?.[1].body).toEqual({ only_own: true });
  expect(live.announceChange).toHaveBeenCalledWith('notifications');
  arrives(2, { type: 'report.created', report_id: 'r2' });
  arrives(3, { type: 'report.overdue', report_id: 'r2' });
  expect([shown(), page.unread.value, toasts.value.length]).toEqual([[], 0, 0]);
  arrives(4, { type: 'report.status.updated', status: 'resolved' });
  expect([shown(), page.unread.value, toasts.value.length]).toEqual([['n4'], 1, 1]);
});
