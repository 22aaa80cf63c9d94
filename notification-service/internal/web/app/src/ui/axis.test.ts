import { expect, test } from 'vitest';

import { share, timeTicks, valueTicks } from './axis';

test.each([
  [0, [0, 1]],
  [1, [0, 0.25, 0.5, 0.75, 1]],
  [0.3, [0, 0.1, 0.2, 0.3]],
  [7, [0, 2, 4, 6, 8]],
  [23.4, [0, 10, 20, 30]],
  [1_000, [0, 250, 500, 750, 1_000]],
])('values up to %d have round marks', (most, want) => expect(valueTicks(most, 'linear')).toEqual(want));

test('the marks of a logarithmic axis are powers of ten', () => {
  expect(valueTicks(340, 'log')).toEqual([0, 1, 10, 100, 1_000]);
  expect(share(0, 1_000, 'log')).toBe(0);
  expect(share(1_000, 1_000, 'log')).toBe(1);
});

test.each([15, 60, 360])('the last %d minutes have round times', (minutes) => {
  const to = new Date(2026, 10, 22, 7, 33, 20).getTime();
  const ticks = timeTicks(to - minutes * 60_000, to).map((at) => new Date(at));
  expect(ticks.length).toBeGreaterThanOrEqual(3);
  expect(ticks.length).toBeLessThanOrEqual(7);
  for (const at of ticks) expect([at.getMinutes() % 5, at.getSeconds()]).toEqual([0, 0]);
});
