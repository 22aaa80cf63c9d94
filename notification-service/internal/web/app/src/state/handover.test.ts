import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { handOver, takeOver } from './handover';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  sessionStorage.clear();
});

test('what was begun before signing in is found once, and not long after', () => {
  handOver({ vote: { report: 'r1', type: 'upvote' } });
  expect(takeOver()).toEqual({ vote: { report: 'r1', type: 'upvote' } });
  expect(takeOver()).toEqual({});
  handOver({ vote: { report: 'r1', type: 'upvote' } });
  vi.advanceTimersByTime(10 * 60_000);
  expect(takeOver()).toEqual({});
  expect(sessionStorage).toHaveLength(0);
});

test('what another version left is nothing', () => {
  sessionStorage.setItem('cityconnect.handover', '{');
  expect(takeOver()).toEqual({});
});
