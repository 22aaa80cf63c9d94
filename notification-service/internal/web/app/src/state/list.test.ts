import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { reportService, type FeedEvent, type Report } from '../api/client';
import { deferred, ok, refused, report, serve } from '../testing/api';
import type { StreamEvent } from '@cityconnect/stream/browser';

// The feed of the test: what subscribeToFeed would hear from the stream.
const streams = vi.hoisted(() => ({ feed: (_: StreamEvent) => {} }));
vi.mock('../live/live', () => ({ onStream: (_: string, listener: (event: StreamEvent) => void) => (streams.feed = listener) }));

import { subscribeToFeed } from './feed';
import { createList, noFilters } from './list';

/** A day's report; the higher the day the newer. */
const on = (day: number, part: Partial<Report> = {}) =>
  report({ id: `r${day}`, created_at: `2026-01-${String(day).padStart(2, '0')}T12:00:00Z`, ...part });
const page = (reports: Report[], next_cursor?: string) => ok({ reports, ...(next_cursor && { next_cursor }) });
const ids = (list: { reports: { value: Report[] } }) => list.reports.value.map(({ id }) => id);
const many = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) =>
    report({ id: `r${from - i}`, created_at: new Date(Date.UTC(2026, 0, 1) + (from - i) * 1000).toISOString() }),
  );

function happens(part: Partial<FeedEvent>): void {
  const data = {
    type: 'report.vote.received',
    report_id: 'r1',
    report_version: 2,
    report_title: '',
    happened_at: '2026-02-01T00:00:00Z',
    ...part,
  };
  streams.feed({ type: 'notification', data, id: '' });
}

beforeEach(() => {
  vi.useFakeTimers();
  subscribeToFeed();
});
afterEach(() => void vi.useRealTimers());

/** Runs what is due, and what it promised. */
const later = () => vi.advanceTimersByTimeAsync(3_000);

test('asks for what the filters say, and for the page behind with its cursor', async () => {
  const get = serve(reportService, 'GET', (_, { params }) => (params?.query?.cursor ? page([on(1)]) : page([on(3), on(2)], 'c2')));
  const list = createList('all');
  list.load({ ...noFilters, q: 'dark', status: ['pending'], bbox: '1,2,3,4' });
  await later();
  expect(get.mock.lastCall).toEqual([
    '/reports',
    { params: { query: { limit: 20, q: 'dark', status: ['pending'], category: [], figures: true, bbox: '1,2,3,4' } } },
  ]);
  expect([ids(list), list.next.value, list.state.value]).toEqual([['r3', 'r2'], 'c2', 'ready']);
  await list.more();
  expect(get.mock.lastCall?.[1].params?.query).toMatchObject({ cursor: 'c2' });
  expect([ids(list), list.next.value]).toEqual([['r3', 'r2', 'r1'], undefined]);
});

test("one's own reports are asked for without order and area", async () => {
  const get = serve(reportService, 'GET', () => page([]));
  createList('mine').load(noFilters);
  await later();
  expect(get.mock.lastCall?.[0]).toBe('/reports/mine');
  expect(get.mock.lastCall?.[1].params?.query).not.toHaveProperty('order');
});

test('in another order a new report is not put first, nor held for who reads', async () => {
  const get = serve(reportService, 'GET', (_, { params }) =>
    params?.query?.cursor ? page([on(2)]) : page([on(3, { score: 9 }), on(1)], 'c2'),
  );
  const list = createList('all');
  const stop = list.watch();
  list.load({ ...noFilters, order: 'score' });
  await later();
  expect(get.mock.lastCall?.[1].params?.query).toMatchObject({ order: 'score' });
  await list.more();
  vi.stubGlobal('scrollY', 1_000);
  happens({ type: 'report.created', report_id: 'r9', report_version: 1 });
  happens({ report_id: 'r1', report_version: 5, score: 20 });
  await later();
  expect([ids(list), list.waiting.value, list.reports.value[1]?.score]).toEqual([['r3', 'r1', 'r2'], 0, 20]);
  await list.refresh();
  expect(ids(list)).toEqual(['r3', 'r1', 'r2']);
  stop();
});

test('an answer to what is no longer asked is dropped', async () => {
  const slow = deferred<ReturnType<typeof page>>();
  serve(reportService, 'GET', (_, { params }) => (params?.query?.q === 'slow' ? slow.promise : page([on(2)])));
  const list = createList('all');
  list.load({ ...noFilters, q: 'slow' });
  list.load({ ...noFilters, q: 'fast' });
  await later();
  slow.resolve(page([on(9)], 'wrong'));
  await later();
  expect([ids(list), list.next.value]).toEqual([['r2'], undefined]);
});

test('the same list is not asked for twice while it is on its way', async () => {
  const get = serve(reportService, 'GET', () => page([on(1)]));
  const list = createList('all');
  list.load(noFilters);
  list.load({ ...noFilters });
  await later();
  expect(get).toHaveBeenCalledOnce();
});

test('a failure says so and keeps what was shown', async () => {
  let answer = page([on(1)], 'c2');
  serve(reportService, 'GET', () => answer);
  const list = createList('all');
  list.load(noFilters);
  await later();
  answer = refused(503, 'unavailable');
  await list.more();
  expect([ids(list), list.state.value]).toEqual([['r1'], 'failed']);
  expect(list.error.value).toBeDefined();
  answer = page([]);
  await list.more();
  expect([list.state.value, list.error.value]).toEqual(['ready', undefined]);
});

test('a screen that is shown again has all the pages that it had', async () => {
  const get = serve(reportService, 'GET', (_, { params }) =>
    params?.query?.cursor ? page(many(50, 50), 'c3') : page(many(100, 50), 'c2'),
  );
  const list = createList('all');
  list.load(noFilters);
  await later();
  await list.more();
  get.mockClear();
  list.load(noFilters);
  expect([ids(list).length, list.state.value]).toEqual([100, 'ready']);
  await later();
  expect([ids(list).length, get.mock.calls.length]).toEqual([100, 1]); // and is current
  list.load({ ...noFilters, q: 'dark' });
  await later();
  expect(ids(list)).toHaveLength(50);
});

test('more that was asked for comes, also when a fresh first page overtakes it', async () => {
  let answer = (_: ReturnType<typeof page>) => {};
  serve(reportService, 'GET', (_, { params }) =>
    params?.query?.cursor ? new Promise((resolve) => (answer = resolve)) : page(many(100, 50), 'c2'),
  );
  const list = createList('all');
  list.load(noFilters);
  await later();
  const more = list.more();
  await list.refresh();
  answer(page(many(50, 50)));
  await more;
  expect(ids(list)).toHaveLength(100);
});

describe('a list of several pages', () => {
  async function twoPages(first: Report[], behind: Report[]) {
    let fresh = first;
    serve(reportService, 'GET', (_, { params }) => (params?.query?.cursor ? page(behind, 'c3') : page(fresh, 'c2')));
    const list = createList('all');
    list.load(noFilters);
    await later();
    await list.more();
    return { list, become: (reports: Report[]) => (fresh = reports) };
  }

  test('gets a fresh first page in front, without losing or doubling what is behind', async () => {
    const { list, become } = await twoPages(many(100, 50), many(50, 50));
    // Two came, so that two of the first page are now on the second.
    become(many(102, 50));
    await list.refresh();
    expect(ids(list)).toEqual(many(102, 102).map(({ id }) => id));
    expect(list.next.value).toBe('c3');
  });

  test('keeps what was filed at the very moment at which the first page ends', async () => {
    const [last, ...behind] = many(51, 51);
    const twin = { ...on(1), id: 'twin', created_at: last?.created_at ?? '' };
    const first = [...many(100, 49), ...(last ? [last] : [])];
    const { list } = await twoPages(first, [twin, ...behind]);
    await list.refresh();
    expect(ids(list)).toEqual([...first, twin, ...behind].map(({ id }) => id));
  });

  test('drops from the first page what is gone from it', async () => {
    const { list, become } = await twoPages(many(100, 50), many(50, 50));
    become(many(100, 51).filter(({ id }) => id !== 'r99'));
    await list.refresh();
    expect(ids(list)).not.toContain('r99');
    expect(ids(list)).toHaveLength(99);
  });
});

describe('while it is watched', () => {
  test('a vote changes the report at its place, and asks nothing', async () => {
    const get = serve(reportService, 'GET', () => page([on(2), on(1)]));
    const list = createList('all');
    const stop = list.watch();
    list.load(noFilters);
    await later();
    happens({ report_id: 'r1', score: 7 });
    await later();
    expect(list.reports.value.map(({ score }) => score)).toEqual([0, 7]);
    expect(get).toHaveBeenCalledOnce();
    stop();
  });

  test('a new report is fetched, once for many', async () => {
    let reports = [on(1)];
    const get = serve(reportService, 'GET', () => page(reports));
    const list = createList('all');
    const stop = list.watch();
    list.load(noFilters);
    await later();
    reports = [on(3), on(2), on(1)];
    happens({ type: 'report.created', report_id: 'r2' });
    happens({ type: 'report.created', report_id: 'r3' });
    await later();
    expect(ids(list)).toEqual(['r3', 'r2', 'r1']);
    expect(get).toHaveBeenCalledTimes(2);
    stop();
  });

  test('a change of status is fetched only where the list is of certain statuses', async () => {
    const get = serve(reportService, 'GET', () => page([on(1)]));
    const list = createList('all');
    const stop = list.watch();
    list.load(noFilters);
    await later();
    happens({ type: 'report.status.updated', status: 'resolved' });
    await later();
    expect([list.reports.value[0]?.status, get.mock.calls.length]).toEqual(['resolved', 1]);
    list.load({ ...noFilters, status: ['pending'] });
    await later();
    happens({ type: 'report.status.updated', status: 'resolved', report_version: 3 });
    await later();
    expect(get).toHaveBeenCalledTimes(3);
    stop();
  });

  test('where many reports are filed it is fetched every ten seconds', async () => {
    const get = serve(reportService, 'GET', () => page([on(1)]));
    const list = createList('all');
    const stop = list.watch();
    list.load(noFilters);
    await later();
    get.mockClear();
    for (let second = 0; second < 60; second++) {
      happens({ type: 'report.created', report_id: `new${second}` });
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(get.mock.calls.length).toBeGreaterThanOrEqual(5);
    expect(get.mock.calls.length).toBeLessThanOrEqual(7);
    stop();
  });

  test('what is filed while somebody reads further down waits to be asked for', async () => {
    const get = serve(reportService, 'GET', () => page([on(1)]));
    const list = createList('all');
    const stop = list.watch();
    list.load(noFilters);
    await later();
    get.mockClear();
    vi.stubGlobal('scrollY', 900);
    happens({ type: 'report.created', report_id: 'new1' });
    happens({ type: 'report.created', report_id: 'new2' });
    await later();
    expect([list.waiting.value, get.mock.calls.length]).toEqual([2, 0]);
    vi.stubGlobal('scrollTo', () => void vi.stubGlobal('scrollY', 0));
    await list.showWaiting();
    expect([list.waiting.value, get.mock.calls.length]).toEqual([0, 1]);
    stop();
  });

  test('a fresh page that comes while somebody reads further down puts nothing above it', async () => {
    const all = many(100, 50);
    serve(reportService, 'GET', () => page(all.slice(0, 50), `behind ${all[49]?.id}`));
    const list = createList('all');
    const stop = list.watch();
    list.load(noFilters);
    await later();
    const shown = ids(list);
    streams.feed({ type: 'ready', data: {}, id: '' }); // asks for a fresh page, soon
    vi.stubGlobal('scrollY', 900);
    all.unshift(...many(102, 2));
    await later();
    await later();
    expect([ids(list), list.waiting.value, list.next.value]).toEqual([shown, 2, 'behind r51']);
    happens({ type: 'report.created', report_id: 'r102' }); // which that page had
    happens({ type: 'report.created', report_id: 'r100' }); // which is shown
    happens({ type: 'report.created', report_id: 'r103' });
    await later();
    expect(list.waiting.value).toBe(3);
    happens({ type: 'report.moderated', action: 'hidden', report_id: 'r103' });
    all.unshift(...many(200, 60)); // more than a page
    await vi.advanceTimersByTimeAsync(13_000);
    expect([ids(list), list.waiting.value]).toEqual([shown, 52]);
    vi.stubGlobal('scrollTo', () => void vi.stubGlobal('scrollY', 0));
    await list.showWaiting();
    expect([ids(list)[0], ids(list).length, list.waiting.value, list.next.value]).toEqual(['r200', 50, 0, 'behind r151']);
    stop();
  });

  test('a gap in the feed is closed by a fresh page', async () => {
    const get = serve(reportService, 'GET', () => page([on(1)]));
    const list = createList('all');
    const stop = list.watch();
    list.load(noFilters);
    await later();
    streams.feed({ type: 'ready', data: {}, id: '' });
    await later();
    await later();
    expect(get).toHaveBeenCalledTimes(2);
    stop();
    streams.feed({ type: 'ready', data: {}, id: '' });
    await later();
    await later();
    expect(get).toHaveBeenCalledTimes(2); // nobody watches any more
  });

  test('new reports are fetched, and not the page that is shown already', async () => {
    const all = many(100, 50);
    const get = serve(reportService, 'GET', (_, { params }) => page(all.slice(0, Number(params?.query?.limit)), 'next'));
    const list = createList('all');
    const stop = list.watch();
    list.load(noFilters);
    await later();
    all.unshift(...many(102, 2)); // one of the two has no event yet
    happens({ type: 'report.created', report_id: 'r102' });
    await later();
    expect([get.mock.lastCall?.[1].params?.query?.limit, ids(list).length, ids(list)[0], list.next.value]).toEqual([3, 22, 'r102', 'next']);
    expect(new Set(ids(list)).size).toBe(22);
    stop();
  });

  test('no report is left out where more were filed than the feed has told of', async () => {
    const all = many(100, 50);
    serve(reportService, 'GET', (_, { params }) => page(all.slice(0, Number(params?.query?.limit)), 'next'));
    const list = createList('all');
    const stop = list.watch();
    list.load(noFilters);
    await later();
    all.unshift(...many(110, 10));
    happens({ type: 'report.created', report_id: 'r110' });
    await later();
    expect(ids(list)).toEqual(all.slice(0, 20).map(({ id }) => id));
    stop();
  });

  test('a page that is left open does not grow without end', async () => {
    let newest = 100;
    serve(reportService, 'GET', (_, { params }) => page(many(newest, Number(params?.query?.limit)), 'next'));
    const list = createList('all');
    const stop = list.watch();
    list.load(noFilters);
    await later();
    for (let i = 0; i < 30; i++) {
      newest += 10;
      for (let n = 0; n < 10; n++) happens({ type: 'report.created', report_id: `r${newest - n}` });
      await vi.advanceTimersByTimeAsync(13_000);
      expect(ids(list)[0]).toBe(`r${newest}`);
      expect(ids(list).length).toBeLessThanOrEqual(102);
    }
    stop();
  });
});

test('what officials hide is gone at once, and new words are shown at once', async () => {
  const get = serve(reportService, 'GET', () => page([on(3), on(2)]));
  const all = createList('all');
  const own = createList('mine');
  all.watch();
  own.watch();
  all.load(noFilters);
  own.load(noFilters);
  await later();
  get.mockImplementation(() => new Promise(() => {})); // what the feed says is enough
  happens({ type: 'report.moderated', action: 'hidden', report_id: 'r3', report_title: '7KQ2-M9XB' });
  happens({ type: 'report.moderated', action: 'redacted', report_id: 'r2', report_title: 'Dark [name]' });
  await later();
  expect(ids(all)).toEqual(['r2']);
  expect(all.reports.value[0]?.title).toBe('Dark [name]');
  expect(ids(own)).toEqual(['r3', 'r2']);
  expect(own.reports.value[0]?.title).not.toContain('7KQ2');
});
