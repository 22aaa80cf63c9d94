import { render } from 'preact';
import { expect, test } from 'vitest';

import { Chart } from './chart';

function draw(values: (number | undefined)[]) {
  const root = document.createElement('div');
  render(<Chart label="Confirm time" lines={[{ name: 'p50', values }]} unit=" ms" />, root);
  return { path: root.querySelector('path.p50')?.getAttribute('d'), words: root.querySelector('svg')?.getAttribute('aria-label') };
}

test('a line has a gap where nothing was measured, and a lone value is a dot', () => {
  expect(draw([1, 2]).path?.match(/[ML]/g)).toEqual(['M', 'L']);
  expect(draw([1, undefined, 2, 2]).path?.match(/[MLh]/g)).toEqual(['M', 'h', 'M', 'h', 'L']);
});

test('what is drawn is said in words', () => {
  expect(draw([1.234, 12, 3]).words).toBe('Confirm time, median: now 3 ms, at most 12 ms in the last minutes');
  expect(draw([12, undefined]).words).toContain('now nothing to measure, at most 12 ms');
});
