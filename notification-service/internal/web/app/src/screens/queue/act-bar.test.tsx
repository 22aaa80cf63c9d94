import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, expect, test, vi } from 'vitest';

import { ActBar } from './act-bar';

afterEach(() => vi.useRealTimers());

test('what came of a change is shown for a minute', async () => {
  vi.useFakeTimers();
  const onClose = vi.fn();
  const others = { onMove: vi.fn(), onAssign: vi.fn(), onClear: vi.fn(), onUndone: vi.fn() };
  const root = document.createElement('div');
  const done = { to: 'resolved' as const, tasks: [], back: [] };
  await act(() => render(<ActBar chosen={[]} done={done} undoing={{ current: undefined }} onClose={onClose} {...others} />, root));
  await vi.advanceTimersByTimeAsync(59_000);
  expect(onClose).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(onClose).toHaveBeenCalledOnce();
});
