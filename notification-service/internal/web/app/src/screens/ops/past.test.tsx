import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test } from 'vitest';

import { notificationService } from '../../api/client';
import { ok, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { ChooseRange, pastOf, usePoolPast } from './past';

const history = {
  since: '2026-11-22T07:00:00Z',
  step_seconds: 30,
  replicas: [3, 3, 2],
  series: [
    { name: 'handled_per_s', queue: 'a', runs: [{ from: 0, values: [1, 2] }] },
    {
      name: 'handled_per_s',
      queue: 'b',
      runs: [
        { from: 0, values: [4] },
        { from: 2, values: [1] },
      ],
    },
    { name: 'depth', queue: 'a', runs: [{ from: 0, values: [0, 0, 7] }] },
  ],
};

test('a series is that of a queue, or the sum of all, with gaps where nothing is known', () => {
  const past = pastOf(history);
  expect(past.of('handled_per_s')).toEqual([5, 2, 1]);
  expect(past.of('handled_per_s', 'b')).toEqual([4, undefined, 1]);
  expect(past.of('depth', 'a')).toEqual([0, 0, 7]);
  expect([past.since, past.step]).toEqual([Date.UTC(2026, 10, 22, 7), 30_000]);
});

test('a chart has its past at once, for as long as was chosen', async () => {
  const asked: unknown[] = [];
  serve(notificationService, 'GET', (_, { params }) => {
    asked.push(params?.['query']?.['minutes']);
    return ok(history);
  });
  const Reads = () => <output>{usePoolPast().value?.of('depth').join()}</output>;
  const root = document.createElement('div');
  await act(() =>
    render(
      <>
        <ChooseRange />
        <Reads />
      </>,
      root,
    ),
  );
  await act(settled);
  expect(root.querySelector('output')?.textContent).toBe('0,0,7');
  const select = root.querySelector('select')!;
  select.value = '360';
  await act(() => void select.dispatchEvent(new Event('change')));
  await act(settled);
  expect(asked).toEqual([60, 360]);
  await act(() => render(null, root));
});
