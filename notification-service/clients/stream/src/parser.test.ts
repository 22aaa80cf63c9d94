import { expect, test } from 'vitest';

import { newParser } from './parser.js';

// The cases are those of WHATWG HTML §9.2.6 and what browsers do beyond it.
test.each<[name: string, text: string, want: string[], retryMs?: number]>([
  ['one event', 'event: notification\nid: v1.a.1\ndata: {}\n\n', ['notification|v1.a.1|{}']],
  ['no type', 'data: x\n\n', ['message||x']],
  ['lines of data', 'data: a\ndata:b\ndata\ndata:  c\n\n', ['message||a\nb\n\n c']],
  ['CR and CRLF', 'data: a\r\rdata: b\r\n\r\ndata: c\n\n', ['message||a', 'message||b', 'message||c']],
  ['byte order mark', '\uFEFFdata: a\n\n\uFEFFdata: b\n\n', ['message||a']],
  ['comments', ': hello\ndata: a\n:\n\n', ['message||a']],
  ['id alone moves the cursor', 'id: 7\n\ndata: a\n\n', ['message|7|a']],
  ['id stays', 'id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n', ['message|7|a', 'message|7|b', 'message||c']],
  ['id with NUL', 'id: a\0b\ndata: a\n\n', ['message||a']],
  ['type without data is forgotten', 'event: x\n\ndata: a\n\n', ['message||a']],
  ['retry', 'retry: 2500\nretry: soon\nretry:\n\n', [], 2500],
  ['unknown field', 'data: a\nfoo: b\ndatas: c\n\n', ['message||a']],
  ['unfinished event', 'data: a\n\nid: 9\ndata: b\n', ['message||a']],
])('%s', (_, text, want, retryMs) => {
  for (const parts of [[text], [...text], [text.slice(0, 9), '', text.slice(9)]]) {
    const got: string[] = [];
    const parser = newParser((type, data, id) => got.push(`${type}|${id}|${data}`));
    for (const part of parts) parser.feed(part);
    expect([got, parser.retryMs]).toEqual([want, retryMs]);
  }
});

test('an event that is complete is not held back for what may follow its CR', () => {
  const got: string[] = [];
  newParser((_, data) => got.push(data)).feed('data: a\r\r');
  expect(got).toEqual(['a']);
});

test('refuses an endless line', () => {
  const parser = newParser(() => {});
  expect(() => {
    for (let i = 0; i < 100; i++) parser.feed('x'.repeat(100_000));
  }).toThrow('too long');
});
