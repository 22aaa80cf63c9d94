import { beforeEach, expect, test, vi } from 'vitest';

import { notificationService, reportService } from '../../api/client';
import { ok, refused, serve } from '../../testing/api';
import { health, partOf, read } from './health';

const NOON = Date.parse('2026-11-22T12:00:00Z');
const dead = { name: 'dead_letters', state: 'bad', cause: 'open', names: [], count: 24, since: '2026-11-22T11:00:00Z' };

beforeEach(() => {
  vi.useFakeTimers({ now: NOON });
  health.value = { reports: {}, notifications: {} };
  return () => vi.useRealTimers();
});

test('a service that no longer answers keeps what it said, with the time of its last answer', async () => {
  serve(notificationService, 'GET', () => ok({ at: '', parts: [dead] }));
  await read('notifications');
  serve(notificationService, 'GET', () => ({ error: '<html>', response: new Response(null, { status: 503 }) }));
  for (let i = 0; i < 2; i++) {
    vi.setSystemTime(NOON + 10_000);
    await read('notifications');
  }
  expect(health.value.notifications.missing).toEqual({ since: NOON, how: 'gateway' });
  expect(partOf('notifications', 'dead_letters')?.count).toBe(24);
  serve(notificationService, 'GET', () => ok({ at: '', parts: [{ ...dead, count: 0 }] }));
  await read('notifications');
  expect(health.value.notifications.missing).toBeUndefined();
});

test('one service takes nothing from the other', async () => {
  serve(notificationService, 'GET', () => refused(500, 'internal'));
  serve(reportService, 'GET', () => ok({ at: '', parts: [] }));
  await Promise.all([read('reports'), read('notifications')]);
  expect(health.value.reports).toEqual({ parts: [], answeredAt: NOON });
  expect(health.value.notifications.parts).toBeUndefined();
});

test('a late answer differs from no answer', async () => {
  serve(reportService, 'GET', (_, options) => {
    const { signal } = options as { signal: AbortSignal };
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new DOMException('', 'AbortError'))));
  });
  const reading = read('reports');
  await vi.advanceTimersByTimeAsync(5_000);
  await reading;
  expect(health.value.reports.missing?.how).toBe('timeout');
  serve(reportService, 'GET', () => Promise.reject(new TypeError('Failed to fetch')));
  await read('reports');
  expect(health.value.reports.missing?.how).toBe('network');
});
