import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test, vi } from 'vitest';

import { notificationService } from '../../../api/client';
import { ok, serve } from '../../../testing/api';
import { settled } from '../../../testing/browser';
import { EndpointPast, pastOf } from './history';

const SINCE = Date.parse('2026-11-22T06:31:00Z');
const at = (minute: number) => new Date(SINCE + minute * 60_000).toISOString();
const NOW = SINCE + 59.5 * 60_000;

test('each step has its rate and its percentile, and gaps are not zeros', () => {
  const points = [
    { at: at(0), succeeded: 1999, failed: 1, p95_ms: 41 },
    { at: at(30), succeeded: 0, failed: 3 },
    { at: at(59), succeeded: 2, failed: 0, p95_ms: 12 },
  ];
  const past = pastOf({ since: at(0), step_seconds: 60, points }, 'hour', NOW);
  expect(past.rates).toHaveLength(60);
  expect([past.rates[0], past.rates[1], past.rates[30], past.rates[59]]).toEqual([99.9, undefined, 0, 100]);
  expect([past.p95[0], past.p95[30], past.p95[59]]).toEqual([41, undefined, 12]);
  expect(past).toMatchObject({ succeeded: 2001, attempts: 2005, worst: { at: SINCE + 30 * 60_000, rate: 0 }, shortened: false });
});

test('a past that begins later says so', () => {
  expect(pastOf({ since: at(40), step_seconds: 60, points: [] }, 'hour', NOW)).toMatchObject({ shortened: true, attempts: 0 });
});

test('the charts are said in words, and reach as far back as the reader chooses', async () => {
  vi.spyOn(Date, 'now').mockReturnValue(NOW);
  const get = serve(notificationService, 'GET', (_, { params }) =>
    ok(
      params?.query?.['span'] === 'week'
        ? { since: '2026-11-15T08:00:00Z', step_seconds: 3600, points: [] }
        : { since: at(0), step_seconds: 60, points: [{ at: at(58), succeeded: 1, failed: 3, p95_ms: 41 }] },
    ),
  );
  const root = document.createElement('div');
  document.body.replaceChildren(root);
  await act(() => render(<EndpointPast id="w1" />, root));
  await act(settled);
  expect(root.querySelector('section p')?.textContent).toMatch(/^1 of 4 attempts succeeded\. The fewest did at .*: 25 %\.$/);
  expect([...root.querySelectorAll('svg')].map((svg) => svg.getAttribute('aria-label'))).toEqual([
    'Attempts that succeeded: now nothing to measure, at most 25 % in the time shown',
    expect.stringMatching(/at most 41 ms/),
  ]);
  await act(() => {
    const select = root.querySelector('select')!;
    select.value = 'week';
    select.dispatchEvent(new Event('change', { bubbles: true }));
  });
  await act(settled);
  expect(get.mock.lastCall?.[1].params?.query).toEqual({ span: 'week' });
  expect(root.querySelector('section p')?.textContent).toBe('Nothing was sent in this time.');
  expect([...root.querySelectorAll('.axis.times span')].map(({ textContent }) => textContent)).toContain('Tue');
  await act(() => render(null, root));
});
