import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test, vi } from 'vitest';

import { Chart, ChooseScale, type Line } from './chart';

function draw(values: (number | undefined)[]) {
  const root = document.createElement('div');
  render(<Chart label="Confirm time" lines={[{ name: 'p50', values }]} unit=" ms" times={{ since: 0, step: 30_000 }} />, root);
  return { path: root.querySelector('path.p50')?.getAttribute('d'), words: root.querySelector('svg')?.getAttribute('aria-label') };
}

test('a line has a gap where nothing was measured, and a lone value is a dot', () => {
  expect(draw([1, 2]).path?.match(/[ML]/g)).toEqual(['M', 'L']);
  expect(draw([1, undefined, 2, 2]).path?.match(/[MLh]/g)).toEqual(['M', 'h', 'M', 'h', 'L']);
});

test('the area is below the line alone, and has its gaps', () => {
  const root = document.createElement('div');
  render(<Chart label="Waiting" lines={[{ values: [undefined, 1, 2, undefined, 3] }]} times={{ since: 0, step: 1 }} />, root);
  const d = root.querySelector('path.area')?.getAttribute('d') ?? '';
  expect(d.match(/M([0-9.]+),60L/g)).toEqual(['M75.0,60L', 'M300.0,60L']);
  expect(d.match(/V60Z/g)).toHaveLength(2);
});

test('what is drawn is said in words', () => {
  expect(draw([1.234, 12, 3]).words).toBe('Confirm time, median: now 3 ms, at most 12 ms in the time shown');
  expect(draw([12, undefined]).words).toContain('now nothing to measure, at most 12 ms');
});

test('axes stand beside the plot, with round values and the present', () => {
  const root = document.createElement('div');
  const times = { since: Date.UTC(2026, 10, 22, 7), step: 60_000 };
  render(<Chart label="Waiting" lines={[{ values: [1, 2, 7, 4, 5] }]} times={times} />, root);
  expect(root.querySelectorAll('.plot .axis')).toHaveLength(0);
  expect([...root.querySelectorAll('.values span:not(.widest)')].map(({ textContent }) => textContent)).toEqual(['0', '2', '4', '6', '8']);
  expect(root.querySelector('.times .now')?.textContent).toBe('now');
});

test('two lines are linear until a reader chooses otherwise, and then the chart says so', async () => {
  const root = document.createElement('div');
  const lines: [Line, Line] = [
    { name: 'p50', values: [1, 1] },
    { name: 'p99', values: [100, 100] },
  ];
  await act(() =>
    render(
      <>
        <ChooseScale />
        <Chart label="Confirm time" lines={lines} times={{ since: 0, step: 1 }} />
      </>,
      root,
    ),
  );
  const p50 = () => Number(/,([0-9.]+)/.exec(root.querySelector('path.p50')?.getAttribute('d') ?? '')?.[1]);
  expect(p50()).toBeCloseTo(59.4);
  const select = root.querySelector('select')!;
  select.value = 'log';
  await act(() => void select.dispatchEvent(new Event('change')));
  expect(p50()).toBeLessThan(55);
  expect(root.querySelector('figcaption')?.textContent).toContain('Logarithmic');
  select.value = 'linear';
  await act(() => void select.dispatchEvent(new Event('change')));
});

test('pointing at the chart shows the time and the value', async () => {
  const root = document.createElement('div');
  const times = { since: Date.UTC(2026, 10, 22, 7), step: 60_000 };
  await act(() => render(<Chart label="Waiting" lines={[{ values: [1, 2, 3, 4, 5] }]} times={times} />, root));
  const plot = root.querySelector<HTMLElement>('.plot')!;
  vi.spyOn(plot, 'getBoundingClientRect').mockReturnValue({ left: 100, width: 400 } as DOMRect);
  await act(() => void plot.dispatchEvent(new MouseEvent('pointermove', { clientX: 290, bubbles: true })));
  expect(root.querySelector('strong')?.textContent).toBe('3');
  expect(root.querySelector('figcaption')?.textContent).toMatch(/[:.]02/);
  await act(() => void plot.dispatchEvent(new MouseEvent('pointerleave')));
  expect(root.querySelector('strong')?.textContent).toBe('5');
});
