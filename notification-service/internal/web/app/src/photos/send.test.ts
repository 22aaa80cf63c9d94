import { beforeEach, expect, test, vi } from 'vitest';

import type { Upload } from './store';
import { send } from './send';

/** The answers to the requests, in turn: a status, or 0 for a cut line. */
let script: number[];
let sent: string[];

/** As much of an XMLHttpRequest as is used. */
class Request {
  upload: { onprogress?: (event: { lengthComputable: boolean; loaded: number; total: number }) => void } = {};
  onerror?: () => void;
  onload?: () => void;
  onabort?: () => void;
  status = 0;
  statusText = '';
  responseText = '';
  open(method: string, url: string) {
    sent.push(`${method} ${url}`);
  }
  setRequestHeader() {}
  abort() {
    this.onabort?.();
  }
  send() {
    this.upload.onprogress?.({ lengthComputable: true, loaded: 6, total: 10 });
    this.status = script.shift() ?? 202;
    if (this.status === 0) return this.onerror?.();
    if (this.status >= 300)
      this.responseText = JSON.stringify({ type: `https://x/problems.md#${kinds[this.status]}`, title: '', status: this.status });
    this.onload?.();
  }
}

const kinds: Record<number, string> = { 409: 'other-photo', 503: 'unavailable', 408: 'request-timeout' };

const upload: Upload = {
  id: 'p1',
  report: 'r1',
  user: 'maria',
  alt: 'A lamp & a post',
  quarters: 0,
  picture: new Blob(['x'], { type: 'image/jpeg' }),
};

beforeEach(() => {
  sent = [];
  vi.useFakeTimers();
  vi.stubGlobal('XMLHttpRequest', Request);
});

/** Sends, and lets as much time pass as it takes. */
async function outcome(answers: number[], signal = new AbortController().signal): Promise<unknown> {
  script = answers;
  const result = send(upload, () => {}, signal).then(
    (arrived) => (arrived ? 'sent' : 'ended'),
    (error: unknown) => error,
  );
  await vi.runAllTimersAsync();
  return result;
}

test('the same request is sent until it arrives', async () => {
  expect(await outcome([0, 0, 503, 408, 202])).toBe('sent');
  expect(sent).toHaveLength(5);
  expect(new Set(sent)).toEqual(new Set(['PUT /reports/r1/photos/p1?alt=A%20lamp%20%26%20a%20post']));
});

test('a line that is cut twenty times delays a photo, and no more', async () => {
  expect(await outcome([...Array.from({ length: 20 }, () => 0), 202])).toBe('sent');
  expect(sent).toHaveLength(21);
  expect(new Set(sent).size).toBe(1);
});

test('what is refused for good is not sent again', async () => {
  expect(await outcome([409])).toMatchObject({ kind: 'other-photo' });
  expect(sent).toHaveLength(1);
});

test('nothing is sent once it is not wanted any more', async () => {
  const stop = new AbortController();
  stop.abort();
  expect(await outcome([], stop.signal)).toBe('ended');
  expect(sent).toHaveLength(0);
});
