import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { reportService, type FeedEvent, type MoveResult, type Task } from '../api/client';
import type { StreamEvent } from '@cityconnect/stream/browser';
import { ok, refused, report, serve } from '../testing/api';

// The feed of the test: what subscribeToFeed would hear from the stream.
const streams = vi.hoisted(() => ({ feed: (_: StreamEvent) => {} }));
vi.mock('../live/live', () => ({ onStream: (_: string, listener: (event: StreamEvent) => void) => (streams.feed = listener) }));

import { subscribeToFeed } from './feed';
import { filtersOf, queryOf } from './filters';
import { createQueue, moveAll } from './queue';

const pending = filtersOf(new URLSearchParams());

function task(id: string, part: Partial<Task> = {}): Task {
  const { description: _, closed: __, mine: ___, ...rest } = report({ id });
  return {
    ...rest,
    routed: true,
    notes: 0,
    overdue_level: 0,
    waiting: false,
    not_answered: false,
    disputed: false,
    abuse_reports: 0,
    new_comments: 0,
    ...part,
  };
}

const counted = { total: 0, statuses: [], categories: [], departments: [], assignees: [] };

/** A service whose queue has these pages, by cursor. */
function serveQueue(pages: Record<string, Task[]>, next: Record<string, string> = {}) {
  return serve(reportService, 'GET', (path, { params }) => {
    if (path === '/reports/queue/counts') return ok(counted);
    const cursor = (params?.query?.cursor as string | undefined) ?? '';
    return ok({ reports: pages[cursor], ...(next[cursor] && { next_cursor: next[cursor] }) });
  });
}

function happens(part: Partial<FeedEvent>): void {
  const data = { type: 'report.status.updated', report_title: '', happened_at: '2026-02-01T00:00:00Z', ...part };
  streams.feed({ type: 'notification', data, id: '' });
}

const ids = (queue: { tasks: { value: Task[] } }) => queue.tasks.value.map(({ id }) => id);

beforeEach(() => {
  vi.useFakeTimers();
  subscribeToFeed();
});
afterEach(() => void vi.useRealTimers());

/** Runs what is due, and what it promised. */
const later = () => vi.advanceTimersByTimeAsync(3_000);

describe('the queue', () => {
  test('reads all pages that were loaded again', async () => {
    const pages: Record<string, Task[]> = { '': [task('a')], c2: [task('b')] };
    serveQueue(pages, { '': 'c2' });
    const queue = createQueue();
    queue.load(pending, 'oldest');
    await later();
    await queue.more();
    expect(ids(queue)).toEqual(['a', 'b']);
    pages.c2 = [task('c')];
    await queue.refresh();
    expect(ids(queue)).toEqual(['a', 'c']);
  });

  test('loses what leaves its filters, and selects it no more', async () => {
    serveQueue({ '': [task('a'), task('b'), task('c')] });
    const queue = createQueue();
    queue.watch();
    queue.load(pending, 'oldest');
    await later();
    queue.select(['a', 'b']);
    happens({ report_id: 'a', report_version: 2, status: 'resolved' });
    await vi.advanceTimersByTimeAsync(60);
    expect([ids(queue), [...queue.selected.value]]).toEqual([['b', 'c'], ['b']]);
    queue.put(task('b', { status: 'rejected', version: 2 }));
    expect([ids(queue), [...queue.selected.value]]).toEqual([['c'], []]);
    queue.select(['c']);
    queue.drop('c'); // forwarded
    expect([ids(queue), [...queue.selected.value]]).toEqual([[], []]);
  });

  test('asks for withdrawn reports, and keeps those alone', async () => {
    const withdrawn_at = '2026-01-01T12:00:00Z';
    const get = serveQueue({
      '': [task('a', { hidden_reason: 'withdrawn', withdrawn_at }), task('b', { hidden_reason: 'A name' }), task('c')],
    });
    const queue = createQueue();
    queue.load({ ...pending, withdrawn: true }, 'oldest');
    await later();
    expect(ids(queue)).toEqual(['a']);
    expect(JSON.stringify(get.mock.calls)).toContain('"withdrawn":true');
    queue.load({ ...pending, hidden: true }, 'oldest');
    await later();
    expect(ids(queue)).toEqual(['b']);
  });

  test('does not go back behind an event', async () => {
    serveQueue({ '': [task('a', { version: 3, score: 5 })] });
    const queue = createQueue();
    queue.load(pending, 'oldest');
    await later();
    queue.put(task('a', { version: 2, score: 4 }));
    expect(queue.tasks.value[0]?.score).toBe(5);
  });

  test('does not go back behind an act, for what was read before it', async () => {
    const pages: Record<string, Task[]> = { '': [task('a')] };
    serveQueue(pages);
    const queue = createQueue();
    queue.load(pending, 'oldest');
    await later();
    const before = queue.refresh(); // is answered with what the list has now
    pages[''] = [task('a', { duplicate_of: 'b' })];
    queue.put(task('a', { duplicate_of: 'b' }));
    await before;
    await later();
    expect(queue.tasks.value[0]?.duplicate_of).toBe('b');
  });

  test('says that it failed, and is there once it is asked again', async () => {
    const get = serve(reportService, 'GET', () => refused(503, 'unavailable'));
    const queue = createQueue();
    queue.load(pending, 'oldest');
    await later();
    expect(queue.state.value).toBe('failed');
    get.mockRestore();
    serveQueue({ '': [task('a')] });
    await queue.refresh();
    expect([queue.state.value, queue.error.value, ids(queue)]).toEqual(['ready', undefined, ['a']]);
  });
});

test('days are whole ones of the reader', () => {
  const { filed_from, filed_to } = queryOf({ ...pending, from: '2026-11-22', to: '2026-11-22' });
  expect([filed_from, filed_to]).toEqual([new Date(2026, 10, 22).toISOString(), new Date(2026, 10, 23).toISOString()]);
  expect(queryOf({ ...pending, from: 'nonsense' })).not.toHaveProperty('filed_from');
});

describe('a move of many', () => {
  const result = (id: string, problem?: string): MoveResult => ({ id, moved: !problem, ...(problem && { problem }) });

  test('asks for no more than the service takes at once', async () => {
    const post = serve(reportService, 'POST', (_, { body }) =>
      ok({ results: (body as { reports: Task[] }).reports.map(({ id }) => result(id)) }),
    );
    const all = Array.from({ length: 150 }, (_, i) => task(`r${i}`));
    expect(await moveAll(all, 'resolved', '')).toHaveLength(150);
    expect(post.mock.calls.map(([, { body }]) => (body as { reports: Task[] }).reports.length)).toEqual([100, 50]);
  });

  test('tries again what only a vote has changed', async () => {
    serve(reportService, 'GET', (_, { params }) =>
      ok(report({ id: String(params?.path?.id), version: 2, status: params?.path?.id === 'b' ? 'resolved' : 'pending' })),
    );
    const post = serve(reportService, 'POST', (_, { body }) =>
      ok({
        results: (body as { reports: Task[] }).reports.map(({ id, version }) =>
          result(id, version === 1 && id !== 'c' ? 'stale-version' : undefined),
        ),
      }),
    );
    const results = await moveAll([task('a'), task('b'), task('c')], 'resolved', '');
    expect(results.map(({ id, moved }) => [id, moved])).toEqual([
      ['a', true],
      ['b', false], // somebody else was faster
      ['c', true],
    ]);
    expect(post.mock.lastCall?.[1].body).toMatchObject({ reports: [{ id: 'a', version: 2 }] });
  });

  test('is the same request when no answer came, and another one when it was refused', async () => {
    const keys: unknown[] = [];
    const statuses = [503, 400, 200];
    serve(reportService, 'POST', (_, { params }) => {
      keys.push(params?.header?.['Idempotency-Key']);
      const status = statuses.shift() ?? 200;
      return status === 200 ? ok({ results: [result('a')] }) : refused(status, status === 503 ? 'unavailable' : 'invalid-input');
    });
    await expect(moveAll([task('a')], 'resolved', '')).rejects.toThrow();
    await expect(moveAll([task('a')], 'resolved', '')).rejects.toThrow();
    await moveAll([task('a')], 'resolved', '');
    expect(keys[0]).toBe(keys[1]);
    expect(keys[2]).not.toBe(keys[1]);
  });
});
