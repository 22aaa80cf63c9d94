import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { openStream, type Stream, type StreamEvent, type StreamOptions } from './browser.js';
import { FakeEventSource } from './testing/event-source.js';

let stream: Stream;
let events: StreamEvent[];
let live: boolean[];

function open(options: Partial<StreamOptions> = {}): void {
  stream = openStream({
    url: '/notifications/stream',
    onEvent: (event) => events.push(event),
    onLive: (up) => live.push(up),
    mayReopen: () => Promise.resolve(true),
    ...options,
  });
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('EventSource', FakeEventSource);
  FakeEventSource.made = [];
  events = [];
  live = [];
});

afterEach(() => {
  stream.close();
  vi.useRealTimers();
});

test('begins at the given position, or now', () => {
  open({ cursor: 'v1.a.7' });
  expect(FakeEventSource.last.url).toBe('/notifications/stream?last_event_id=v1.a.7');
  stream.close();
  open();
  expect(FakeEventSource.last.url).toBe('/notifications/stream');
});

test('hands on events with their positions, and keeps heartbeats back', () => {
  open();
  FakeEventSource.last.emit('ready', 'v1.a.7', { unread_count: 2 });
  FakeEventSource.last.emit('hb', '');
  FakeEventSource.last.emit('notification', 'v1.a.8', { id: 'n8' });
  expect(events).toEqual([
    { type: 'ready', id: 'v1.a.7', data: { unread_count: 2 } },
    { type: 'notification', id: 'v1.a.8', data: { id: 'n8' } },
  ]);
  expect(live.at(-1)).toBe(true);
});

const ids = () => events.map(({ type, id }) => `${type} ${id}`);

test('drops what came before, in either of two streams', () => {
  open({ cursor: 'v1.a.7.r.2' });
  const first = FakeEventSource.last;
  for (const id of ['v1.a.8.r.2', 'v1.a.8.r.2', 'v1.a.7.r.2', 'v1.a.8.r.3']) first.emit('notification', id);
  expect(ids()).toEqual(['notification v1.a.8.r.2', 'notification v1.a.8.r.3']);
  expect(FakeEventSource.last).toBe(first);
});

describe('a gap', () => {
  test('is closed: the stream is opened again before it', () => {
    open({ cursor: 'v1.a.7' });
    FakeEventSource.last.emit('ready', 'v1.a.7');
    FakeEventSource.last.emit('notification', 'v1.a.9');
    expect(FakeEventSource.made).toHaveLength(2);
    expect(FakeEventSource.last.url).toBe('/notifications/stream?last_event_id=v1.a.7');
    for (const id of ['v1.a.8', 'v1.a.9']) FakeEventSource.last.emit('notification', id);
    expect(ids()).toEqual(['ready v1.a.7', 'notification v1.a.8', 'notification v1.a.9']);
  });

  test('that stays is a reset, from which the stream goes on', () => {
    open({ cursor: 'v1.a.7' });
    for (let i = 0; i < 2; i++) FakeEventSource.last.emit('notification', 'v1.a.9');
    FakeEventSource.last.emit('notification', 'v1.a.10');
    expect(events).toEqual([
      { type: 'reset', id: 'v1.a.9', data: { reason: 'gap' } },
      { type: 'notification', id: 'v1.a.10', data: {} },
    ]);
    expect(FakeEventSource.made).toHaveLength(2);
  });

  test('is seen also where a stream begins', () => {
    open({ cursor: 'v1.a.7' });
    FakeEventSource.last.emit('ready', 'v1.a.9');
    expect(FakeEventSource.made).toHaveLength(2);
    FakeEventSource.last.emit('ready', 'v1.a.9');
    expect(ids()).toEqual(['reset v1.a.9']);
  });

  test('is none after a reset, or in a stream that began again', () => {
    open({ cursor: 'v1.a.7' });
    FakeEventSource.last.emit('reset', 'v1.a.90');
    FakeEventSource.last.emit('ready', 'v1.a.90');
    FakeEventSource.last.emit('notification', 'v1.b.1');
    expect(ids()).toEqual(['reset v1.a.90', 'ready v1.a.90', 'notification v1.b.1']);
  });
});

test('events without ids, as those of the feed, are handed on as they come', () => {
  open({ url: '/feed/stream' });
  for (let i = 0; i < 2; i++) FakeEventSource.last.emit('notification', '');
  expect(ids()).toEqual(['notification ', 'notification ']);
});

describe('a silent connection', () => {
  test('is replaced after 45 s, at the position of the last event', () => {
    open();
    const first = FakeEventSource.last;
    first.emit('notification', 'v1.a.8');
    vi.advanceTimersByTime(44_999);
    expect(FakeEventSource.last).toBe(first);
    vi.advanceTimersByTime(1);
    expect(first.readyState).toBe(FakeEventSource.CLOSED);
    expect(FakeEventSource.last.url).toBe('/notifications/stream?last_event_id=v1.a.8');
    expect(live.at(-1)).toBe(false);
  });

  test('is replaced also if nothing ever came', () => {
    open();
    vi.advanceTimersByTime(45_000);
    expect(FakeEventSource.made).toHaveLength(2);
  });

  test('is none while heartbeats come', () => {
    open();
    for (let i = 0; i < 5; i++) {
      vi.advanceTimersByTime(22_000);
      FakeEventSource.last.emit('hb', '');
    }
    expect(FakeEventSource.made).toHaveLength(1);
  });
});

describe('an answer that ends an EventSource for good', () => {
  test('is followed by further attempts, each after a longer pause, up to half a minute to a minute', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0);
    open();
    for (const pause of [1, 2, 4, 8, 16, 30, 30]) {
      const before = FakeEventSource.made.length;
      FakeEventSource.last.fail(true);
      await vi.advanceTimersByTimeAsync(pause * 1000 - 1);
      expect(FakeEventSource.made).toHaveLength(before);
      await vi.advanceTimersByTimeAsync(1);
      expect(FakeEventSource.made).toHaveLength(before + 1);
    }
    expect(live.at(-1)).toBe(false);
  });

  test('is answered at random times, so that not all browsers return at once', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    open();
    FakeEventSource.last.fail(true);
    await vi.advanceTimersByTimeAsync(1_499);
    expect(FakeEventSource.made).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(FakeEventSource.made).toHaveLength(2);
  });

  test('starts over with a short pause once an event has come', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0);
    open();
    FakeEventSource.last.fail(true);
    await vi.advanceTimersByTimeAsync(1_000);
    FakeEventSource.last.fail(true);
    await vi.advanceTimersByTimeAsync(2_000);
    FakeEventSource.last.emit('ready', 'v1.a.1');
    FakeEventSource.last.fail(true);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(FakeEventSource.made).toHaveLength(4);
  });

  test('ends the stream where it may not be opened again', async () => {
    open({ mayReopen: () => Promise.resolve(false) });
    FakeEventSource.last.fail(true);
    await vi.advanceTimersByTimeAsync(120_000);
    expect(FakeEventSource.made).toHaveLength(1);
  });
});

test('a broken connection is left to the EventSource, which comes back by itself', () => {
  open();
  FakeEventSource.last.emit('ready', 'v1.a.1');
  FakeEventSource.last.fail(false);
  expect(live.at(-1)).toBe(false);
  vi.advanceTimersByTime(20_000);
  expect(FakeEventSource.made).toHaveLength(1);
});

describe('reconnect', () => {
  test('opens at once what is not open', () => {
    open();
    FakeEventSource.last.emit('ready', 'v1.a.1');
    FakeEventSource.last.fail(false);
    stream.reconnect();
    expect(FakeEventSource.last.url).toContain('v1.a.1');
    expect(FakeEventSource.made).toHaveLength(2);
  });

  test('leaves an open stream alone', () => {
    open();
    FakeEventSource.last.emit('ready', 'v1.a.1');
    stream.reconnect();
    expect(FakeEventSource.made).toHaveLength(1);
  });

  test('does not open a closed stream', () => {
    open();
    stream.close();
    stream.reconnect();
    expect(FakeEventSource.made).toHaveLength(1);
  });
});

test('a closed stream does nothing more, whatever was planned or asked', async () => {
  let answer = (_: boolean) => {};
  open({ mayReopen: () => new Promise((resolve) => (answer = resolve)) });
  FakeEventSource.last.fail(true);
  await vi.advanceTimersByTimeAsync(2_000); // it has asked
  stream.close();
  answer(true);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(FakeEventSource.made).toHaveLength(1);
});
