import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { openStream, type Stream, type StreamEvent, type StreamOptions } from './index.js';

interface Request {
  url: string;
  headers: Record<string, string>;
  signal: AbortSignal;
  /** Answers with a status other than that of a stream. */
  refuse(status: number, headers?: Record<string, string>): Promise<void>;
  /** Sends text in the stream, which it begins. */
  send(text: string): Promise<void>;
  /** Ends the stream as the server does. */
  end(): Promise<void>;
  /** Breaks the connection. */
  break(): Promise<void>;
}

let requests: Request[];
let stream: Stream;
let events: StreamEvent[];
let ended: (number | undefined)[];

const settled = async () => void (await vi.advanceTimersByTimeAsync(0));

const fakeFetch = ((url: string, { headers, signal }: { headers: Record<string, string>; signal: AbortSignal }) =>
  new Promise<Response>((resolve, reject) => {
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
    const begun = () => {
      if (controller) return controller;
      const body = new ReadableStream<Uint8Array>({ start: (made) => void (controller = made) });
      resolve(new Response(body, { headers: { 'Content-Type': 'text/event-stream; charset=utf-8' } }));
      return controller as unknown as ReadableStreamDefaultController<Uint8Array>;
    };
    signal.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')));
    const then = (act: () => void) => () => {
      act();
      return settled();
    };
    requests.push({
      url,
      headers,
      signal,
      refuse: (status, headers = {}) => then(() => resolve(new Response(null, { status, headers })))(),
      send: (text) => then(() => begun().enqueue(new TextEncoder().encode(text)))(),
      end: then(() => begun().close()),
      break: then(() => (controller ? controller.error(new Error('broken')) : reject(new Error('refused')))),
    });
  })) as unknown as typeof fetch;

async function open(options: Partial<StreamOptions> = {}): Promise<void> {
  stream = openStream({
    url: 'https://city.test/notifications/stream',
    fetch: fakeFetch,
    onEvent: (event) => events.push(event),
    onEnd: (status) => ended.push(status),
    ...options,
  });
  await settled();
}

/** The connection that was opened last. */
function last(): Request {
  const request = requests.at(-1);
  if (!request) throw new Error('nothing was requested');
  return request;
}

/** Whether the next connection is opened after just so many milliseconds. */
async function expectPause(ms: number): Promise<void> {
  const before = requests.length;
  await vi.advanceTimersByTimeAsync(ms - 1);
  expect(requests).toHaveLength(before);
  await vi.advanceTimersByTimeAsync(1);
  expect(requests).toHaveLength(before + 1);
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, 'random').mockReturnValue(0);
  requests = [];
  events = [];
  ended = [];
});

afterEach(() => {
  stream.close();
  vi.useRealTimers();
});

test('signs in, begins after the cursor, and hands on what comes', async () => {
  await open({ cursor: 'v1.a.7', headers: { Authorization: 'Bearer t' } });
  expect(last().headers).toEqual({ Accept: 'text/event-stream', Authorization: 'Bearer t', 'Last-Event-ID': 'v1.a.7' });
  await last().send('retry: 700\nevent: ready\ndata: {"unread_count":1}\nid: v1.a.7\n\nevent: hb\nda');
  await last().send('ta: 1\n\nevent: notification\ndata: {"report_title":"Jalan — gelap"}\nid: v1.a.8\n\n');
  expect(events).toEqual([
    { type: 'ready', id: 'v1.a.7', data: { unread_count: 1 } },
    { type: 'notification', id: 'v1.a.8', data: { report_title: 'Jalan — gelap' } },
  ]);
});

test('a token may be renewed with each connection', async () => {
  let n = 0;
  await open({ headers: () => Promise.resolve({ Authorization: `Bearer ${++n}` }) });
  await last().break();
  await expectPause(1_000);
  expect(requests.map(({ headers }) => headers.Authorization)).toEqual(['Bearer 1', 'Bearer 2']);
});

describe('an end', () => {
  test('is followed by a connection at the last event, after the time that the server says', async () => {
    await open();
    await last().send('retry: 700\nevent: ready\ndata: {}\nid: v1.a.7\n\nretry: 345\n\n');
    await last().end();
    await expectPause(345);
    expect(last().headers['Last-Event-ID']).toBe('v1.a.7');
  });

  test('without events, as of a server that is full, is left alone for as long as it says', async () => {
    await open();
    for (let i = 0; i < 3; i++) {
      await last().send('retry: 9000\n\n');
      await last().end();
      await expectPause(9_000);
    }
  });

  test('is the same when the connection breaks in the middle of an event', async () => {
    await open();
    await last().send('retry: 700\n\nevent: ready\ndata: {}\nid: v1.a.7\n\nevent: notification\ndata: {}\nid: v1.a.8\n');
    await last().break();
    await expectPause(700);
    expect(last().headers['Last-Event-ID']).toBe('v1.a.7');
    expect(events).toHaveLength(1);
  });

  test('of a stream that says nothing of a time is followed by three seconds', async () => {
    await open();
    await last().send('event: ready\ndata: {}\n\n');
    await last().end();
    await expectPause(3_000);
  });
});

describe('an answer of overload', () => {
  test.each([429, 503])('%d is followed by an attempt after what it says, and up to half as long again', async (status) => {
    await open();
    await last().refuse(status, { 'Retry-After': '20' });
    await expectPause(20_000);
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    await last().refuse(status, { 'Retry-After': '20' });
    await expectPause(25_000);
  });

  test('that says nothing, or nothing of use, is followed by longer and longer pauses', async () => {
    await open();
    for (const [retryAfter, pause] of [
      ['', 1_000],
      ['0', 2_000],
      ['soon', 4_000],
    ] as const) {
      await last().refuse(503, retryAfter ? { 'Retry-After': retryAfter } : {});
      await expectPause(pause);
    }
  });
});

test('a page in place of the stream, as of a captive portal, is not a stream', async () => {
  await open();
  await last().refuse(200, { 'Content-Type': 'text/html' });
  await expectPause(1_000);
});

describe('an answer that ends the stream', () => {
  test.each([204, 400, 401, 403, 404])('%d is the last', async (status) => {
    await open();
    await last().refuse(status);
    await vi.advanceTimersByTimeAsync(120_000);
    expect([requests.length, ended]).toEqual([1, [status]]);
  });

  test('is not the last where the application says so, as with a new token', async () => {
    await open({ mayReopen: (status) => status === 401 });
    await last().refuse(401);
    await expectPause(1_000);
    await last().refuse(403);
    await vi.advanceTimersByTimeAsync(120_000);
    expect(ended).toEqual([403]);
  });
});

test('a silent connection is given up after 45 s', async () => {
  await open();
  await last().send('event: ready\ndata: {}\nid: v1.a.7\n\n');
  const first = last();
  await expectPause(45_000);
  expect(first.signal.aborted).toBe(true);
  expect(last().headers['Last-Event-ID']).toBe('v1.a.7');
});

test('a gap within one part of the stream: what follows it waits for what is missing', async () => {
  await open({ cursor: 'v1.a.7' });
  const block = (n: number) => `event: notification\ndata: {}\nid: v1.a.${n}\n\n`;
  await last().send(block(9) + block(10));
  expect(requests).toHaveLength(2);
  await last().send(block(8) + block(9) + block(10));
  expect(events.map(({ id }) => id)).toEqual(['v1.a.8', 'v1.a.9', 'v1.a.10']);
});

test('a closed stream hands on nothing, not even what has arrived', async () => {
  await open({
    onEvent: (event) => {
      events.push(event);
      stream.close();
    },
  });
  await last().send('event: ready\ndata: {}\nid: v1.a.7\n\nevent: notification\ndata: {}\nid: v1.a.8\n\n');
  await vi.advanceTimersByTimeAsync(120_000);
  expect([events.length, requests.length, ended]).toEqual([1, 1, []]);
});
