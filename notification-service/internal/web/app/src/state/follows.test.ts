import { beforeEach, expect, test, vi } from 'vitest';

import { ok, refused, serve } from '../testing/api';
import { stubDigest } from '../testing/browser';

const live = vi.hoisted(() => ({ changed: (_: string) => {}, announceChange: vi.fn() }));
vi.mock('../live/live', () => ({
  onChange: (listener: typeof live.changed) => (live.changed = listener),
  announceChange: live.announceChange,
}));

type Followed = typeof import('./follows');
let page: Followed;
let service: (typeof import('../api/client'))['notificationService'];
/** The server's list, the latest first. */
let kept: string[];

beforeEach(async () => {
  localStorage.clear();
  stubDigest();
  vi.resetModules();
  page = await import('./follows');
  ({ notificationService: service } = await import('../api/client'));
  kept = [];
  serve(service, 'GET', () => ok({ follows: kept.map((report_id) => ({ report_id, followed_at: '2026-01-01T12:00:00Z' })) }));
  serve(service, 'PUT', (_, { params }) => {
    kept = [String(params?.path?.report_id), ...kept];
    return ok(undefined);
  });
  serve(service, 'DELETE', (_, { params }) => {
    kept = kept.filter((id) => id !== params?.path?.report_id);
    return ok(undefined);
  });
});

test('what is followed is on the server, and nothing of it in the browser', async () => {
  await page.loadFollowed();
  await page.follow('r1', true);
  await page.follow('r2', true);
  await page.follow('r1', false);
  expect([page.followed.value, kept]).toEqual([['r2'], ['r2']]);
  expect(JSON.stringify({ ...localStorage })).not.toContain('r2');
  expect(live.announceChange).toHaveBeenCalledWith('followed');
});

test('what an earlier version kept in the browser is brought to the server, once', async () => {
  const { openUserData, userData } = await import('./storage');
  await openUserData('maria');
  userData<string[]>('followed', () => []).value = ['r2', 'r1'];
  vi.resetModules();
  const { openUserData: again } = await import('./storage');
  page = await import('./follows');
  ({ notificationService: service } = await import('../api/client'));
  serve(service, 'GET', () => ok({ follows: kept.map((report_id) => ({ report_id, followed_at: '' })) }));
  const put = serve(service, 'PUT', (_, { params }) => {
    kept = [String(params?.path?.report_id), ...kept];
    return ok(undefined);
  });
  await again('maria');
  await page.loadFollowed();
  expect(page.followed.value).toEqual(['r2', 'r1']);
  expect(put).toHaveBeenCalledTimes(2);
  expect(JSON.stringify({ ...localStorage })).not.toContain('r2');
});

test('is fetched again when another tab changed it, and after a failure', async () => {
  page.shareFollowed();
  live.changed('followed'); // nothing shows it yet
  expect(service.GET).not.toHaveBeenCalled();
  const failing = serve(service, 'GET', () => refused(503, 'unavailable'));
  await expect(page.loadFollowed()).rejects.toBeDefined();
  failing.mockImplementation(async () => ok({ follows: [{ report_id: 'r7', followed_at: '' }] }));
  await page.loadFollowed();
  expect(page.followed.value).toEqual(['r7']);
  failing.mockImplementation(async () => ok({ follows: [] }));
  live.changed('followed');
  await vi.waitUntil(() => page.followed.value?.length === 0, { timeout: 60_000 });
});
