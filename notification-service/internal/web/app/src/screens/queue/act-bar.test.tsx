import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, expect, test, vi } from 'vitest';

import { createQueue } from '../../state/queue';
import { ActBar } from './act-bar';

afterEach(() => vi.useRealTimers());

test('what came of a change is shown for a minute', async () => {
  vi.useFakeTimers();
  const setDone = vi.fn();
  const root = document.createElement('div');
  const done = { to: 'resolved' as const, tasks: [], back: [] };
  const desk = { chosen: [], done, setDone, undo: { current: undefined }, run: vi.fn(), queue: createQueue() };
  await act(() => render(<ActBar desk={desk} />, root));
  await vi.advanceTimersByTimeAsync(59_000);
  expect(setDone).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(setDone).toHaveBeenCalledOnce();
});
