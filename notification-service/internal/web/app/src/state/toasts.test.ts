import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { dismiss, toast, toasts } from './toasts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  for (const { id } of toasts.value) dismiss(id);
  vi.useRealTimers();
});
const texts = () => toasts.value.map(({ text }) => text);

test('a message goes after seven seconds', () => {
  toast('one');
  vi.advanceTimersByTime(6_999);
  expect(texts()).toEqual(['one']);
  vi.advanceTimersByTime(1);
  expect(texts()).toEqual([]);
});

test('three are shown, the latest ones', () => {
  for (const text of ['one', 'two', 'three', 'four']) toast(text);
  expect(texts()).toEqual(['two', 'three', 'four']);
});

test('news of the same report replaces what was said of it, and is shown as long', () => {
  toast('started', '/reports/1');
  vi.advanceTimersByTime(5_000);
  toast('resolved', '/reports/1');
  expect(texts()).toEqual(['resolved']);
  vi.advanceTimersByTime(5_000);
  expect(texts()).toEqual(['resolved']);
});
