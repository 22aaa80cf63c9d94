import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { notificationService, reportService, type Schedule } from '../../../api/client';
import { ok, serve } from '../../../testing/api';
import { settled } from '../../../testing/browser';
import { Schedules, timesOf } from './schedules';

function job(part: Partial<Schedule> = {}): Schedule {
  return {
    name: 'overdue',
    times: 'every 1m0s',
    catch_up: 'last',
    next_at: '2026-11-22T07:01:00Z',
    paused: false,
    overruns: false,
    ...part,
  };
}

let root: HTMLElement;
const show = async () => {
  await act(() => render(<Schedules />, root));
  await act(settled); // what it reads once it is there
};

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  // jsdom has no modal dialogs.
  HTMLDialogElement.prototype.showModal = vi.fn();
});

test('shows the jobs of both services, how far they are, and that one takes too long', async () => {
  serve(reportService, 'GET', () => ok({ schedules: [job()] }));
  serve(notificationService, 'GET', () =>
    ok({
      schedules: [
        job({
          name: 'digests',
          overruns: true,
          latest: {
            period: '2026-11-22',
            state: 'running',
            due_at: '2026-11-22T00:00:00Z',
            started_at: '2026-11-22T00:00:00Z',
            ends_at: '2026-11-23T04:00:00Z',
            done: 25,
            total: 100,
            failures: 0,
            times: 1,
          },
        }),
      ],
    }),
  );
  await show();
  const rows = [...root.querySelectorAll('li')].map((row) => row.textContent);
  expect(rows).toHaveLength(2);
  expect(rows[0]).toContain('overdue');
  expect(rows[1]).toContain('25 of 100');
  expect(rows[1]).toContain('will not have ended');
});

async function operate(button: string, why: string) {
  await act(async () => {
    [...root.querySelectorAll('button')].find(({ textContent }) => textContent === button)!.click();
    await settled();
  });
  await act(() => {
    const reason = root.querySelector<HTMLInputElement>('form input')!;
    reason.value = why;
    reason.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await act(async () => {
    root.querySelector('form')!.requestSubmit();
    await settled();
  });
}

test('lets a job rest, for a reason', async () => {
  serve(reportService, 'GET', () => ok({ schedules: [job()] }));
  serve(notificationService, 'GET', () => ok({ schedules: [] }));
  const post = serve(reportService, 'POST', () => ok(undefined));
  await show();
  await operate('Pause', ' Moving offices ');
  expect(post.mock.lastCall?.[0]).toBe('/admin/reports/schedules/{name}/pause');
  expect(post.mock.lastCall?.[1]).toMatchObject({ params: { path: { name: 'overdue' } }, body: { reason: 'Moving offices' } });
  expect(root.querySelector('form')).toBeNull();
});

test('has a run that failed go on', async () => {
  const latest = {
    period: '2026-11-22',
    state: 'failed' as const,
    due_at: '2026-11-22T00:00:00Z',
    done: 5,
    total: 0,
    failures: 22,
    times: 1,
    error: 'no luck',
  };
  serve(reportService, 'GET', () => ok({ schedules: [] }));
  serve(notificationService, 'GET', () => ok({ schedules: [job({ name: 'retention', latest })] }));
  const post = serve(notificationService, 'POST', () => ok(undefined));
  await show();
  expect(root.textContent).toContain('no luck');
  await operate('Run now', 'The disk has room again');
  expect(post.mock.lastCall?.[0]).toBe('/admin/notifications/schedules/{name}/run');
  expect(post.mock.lastCall?.[1]).toMatchObject({ body: { reason: 'The disk has room again', period: '2026-11-22' } });
});

test('shows the runs of a job, and how long each took', async () => {
  const run = { due_at: '2026-11-22T00:00:00Z', total: 0, failures: 0, times: 1 };
  const get = serve(reportService, 'GET', (path) =>
    path === '/admin/reports/schedules'
      ? ok({ schedules: [job()] })
      : ok({
          runs: [
            { ...run, period: '2', state: 'failed', done: 1, times: 2, error: 'no luck' },
            { ...run, period: '1', state: 'done', done: 40, started_at: '2026-11-22T00:00:00Z', ended_at: '2026-11-22T00:00:02.5Z' },
          ],
        }),
  );
  serve(notificationService, 'GET', () => ok({ schedules: [] }));
  await show();
  expect(get).toHaveBeenCalledTimes(1); // the runs are not asked for before
  await act(async () => {
    const details = root.querySelector('details')!;
    details.open = true;
    details.dispatchEvent(new Event('toggle'));
    await settled();
  });
  expect(get.mock.lastCall?.[1]).toMatchObject({ params: { path: { name: 'overdue' }, query: { limit: 20 } } });
  const rows = [...root.querySelectorAll('.runs li')].map(({ textContent }) => textContent);
  expect(rows[0]).toContain('no luck');
  expect(rows[0]).toContain('begun 2 times');
  expect(rows[1]).toContain('40 done');
  expect(rows[1]).toContain('took 2.5 s');
});

test.each([
  ['every 24h0m0s', 'every day'],
  ['every 1m0s', 'every minute'],
  ['every 1h30m0s', 'every 90 minutes'],
  ['every 12h0m0s', 'every 12 hours'],
  ['every 45s', 'every 45 seconds'],
  ['every day at 07:00, Asia/Jakarta', 'every day at 07:00, Asia/Jakarta'],
  ['Monday, Friday at 07:00, Asia/Jakarta', 'Monday, Friday at 07:00, Asia/Jakarta'],
])('%s is %s', (times, words) => expect(timesOf(times)).toBe(words));
