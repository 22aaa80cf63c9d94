import { signal } from '@preact/signals';
import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, expect, test, vi } from 'vitest';

import type { Task, Work } from '../../api/client';
import type { OpenWork } from '../../state/work';
import { report } from '../../testing/api';
import { Judged } from './verdict';

afterEach(() => vi.useRealTimers());

const given = (fixed: boolean, text = '') => ({ fixed, text, given_at: '2026-11-27T09:00:00Z', until: '2026-12-11T09:00:00Z' });

function show(status: Task['status'], verdict: Work['verdict'], load = vi.fn()) {
  const task = { ...report(), status } as unknown as Task;
  const open = { work: signal({ report: task, ...(verdict && { verdict }) }), load } as unknown as OpenWork;
  const root = document.createElement('div');
  return act(() => render(<Judged task={task} open={open} />, root)).then(() => root.textContent);
}

test('a confirmation without words is shown', async () => {
  expect(await show('resolved', given(true))).toContain('Fixed, says the reporter');
});

test('a dispute that has ended is marked as an earlier one, and needs words once the report is open again', async () => {
  expect(await show('resolved', given(false, 'Dark again'))).toContain('Before: Not fixed, says the reporter');
  expect(await show('in_progress', given(false, 'Dark again'))).toContain('Before: Not fixed');
  expect(await show('in_progress', given(false))).toBe('');
});

test('a resolved report is read again, since words after a dispute are announced to nobody', async () => {
  vi.useFakeTimers();
  const load = vi.fn();
  await show('resolved', undefined, load);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(load).toHaveBeenCalledTimes(1);
});
