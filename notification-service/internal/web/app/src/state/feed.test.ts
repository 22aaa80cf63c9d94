import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { reportService, type FeedEvent } from '../api/client';
import type { StreamEvent } from '@cityconnect/stream/browser';
import { ok, report, serve } from '../testing/api';

const streams = vi.hoisted(() => ({ feed: (_: StreamEvent) => {} }));
vi.mock('../live/live', () => ({ onStream: (_: string, listener: (event: StreamEvent) => void) => (streams.feed = listener) }));

import { applyEvents, subscribeToFeed } from './feed';
import { createList, noFilters } from './list';

const event = (part: Partial<FeedEvent>): FeedEvent => ({
  type: 'report.vote.received',
  report_id: 'r1',
  report_version: 2,
  report_title: 'Dark crossing',
  happened_at: '2026-01-02T12:00:00Z',
  ...part,
});

describe('a report after events', () => {
  test('has the score, the status and the version of the latest', () => {
    const events = [event({ score: 5 }), event({ type: 'report.status.updated', report_version: 3, status: 'resolved' })];
    expect(applyEvents(report(), events)).toMatchObject({ score: 5, status: 'resolved', version: 3, updated_at: '2026-01-02T12:00:00Z' });
  });

  test('shows a photo that is ready, once', () => {
    const ready = (version: number) => event({ type: 'report.photo.ready', report_version: version, photo_id: 'p1' });
    expect(applyEvents(report(), [ready(2), ready(3)])).toMatchObject({ photos: ['p1'], version: 3 });
  });

  test('takes a score of 0 for a score', () => {
    expect(applyEvents(report({ score: 4 }), [event({ score: 0 })]).score).toBe(0);
  });

  test('is the very same one after what it has already, what is older, and what is about another', () => {
    const shown = report({ version: 3, score: 7 });
    const events = [
      event({ report_version: 3, score: 1 }),
      event({ report_version: 2, score: 1 }),
      event({ report_id: 'r2', report_version: 9 }),
    ];
    expect(applyEvents(shown, events)).toBe(shown);
  });

  test('offers no change of status until it is fetched, because events do not say what is allowed', () => {
    const moved = event({ type: 'report.status.updated', status: 'resolved' });
    expect(applyEvents(report(), [moved]).transitions).toEqual([]);
    expect(applyEvents(report(), [event({ score: 1 })]).transitions).toEqual(report().transitions);
  });

  test('does not go back when events come in the wrong order', () => {
    const events = [event({ report_version: 4, score: 4 }), event({ report_version: 3, score: 3 })];
    expect(applyEvents(report(), events)).toMatchObject({ version: 4, score: 4 });
  });
});

describe('how often the list is asked for', () => {
  beforeEach(() => void vi.useFakeTimers({ now: performance.timeOrigin }));
  let stop = () => {};
  afterEach(() => {
    stop();
    vi.useRealTimers();
  });

  /** Opens the page, which is live after two seconds, and returns how often it has asked for the list by then. */
  async function open() {
    const get = serve(reportService, 'GET', () => ok({ reports: [] }));
    subscribeToFeed();
    const list = createList('all');
    stop = list.watch();
    list.load(noFilters);
    await vi.advanceTimersByTimeAsync(2_000);
    return get;
  }
  const ready = async (quiet_ms: number) => {
    streams.feed({ type: 'ready', data: { quiet_ms }, id: '' });
    await vi.advanceTimersByTimeAsync(30_000);
  };

  test('is once at the start, where nothing has happened since', async () => {
    const get = await open();
    await ready(60_000);
    expect(get).toHaveBeenCalledTimes(1);
  });

  test('is twice, where something has', async () => {
    const get = await open();
    await ready(500);
    expect(get).toHaveBeenCalledTimes(2);
  });

  test('is no more when the connection comes back, unless something has happened while it was away', async () => {
    const get = await open();
    await ready(60_000);
    await ready(120_000); // half a minute later, and nothing has happened since before the first
    expect(get).toHaveBeenCalledTimes(1);
    await ready(10_000);
    expect(get).toHaveBeenCalledTimes(2);
  });
});
