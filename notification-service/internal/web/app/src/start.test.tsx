import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { Failure } from './api/client';
import { loadPage } from './start';

let root: HTMLElement;

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, 'random').mockReturnValue(0);
  root = document.createElement('div');
});
afterEach(() => void vi.useRealTimers());

test('a page that cannot be loaded says why, and tries again with longer and longer pauses', async () => {
  const load = vi.fn(() => Promise.reject(new Failure()));
  void loadPage(load, root);
  await act(async () => void (await vi.advanceTimersByTimeAsync(0)));
  expect(root.textContent).toContain('The city’s server did not answer.');
  for (const pause of [2, 4, 8, 16, 30, 30]) {
    load.mockClear();
    await vi.advanceTimersByTimeAsync(pause * 1000 - 1);
    expect(load).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(load).toHaveBeenCalledOnce();
  }
});

test('it tries at once when asked, and disappears when it succeeds', async () => {
  let fails = true;
  const loaded = loadPage(() => (fails ? Promise.reject(new Failure()) : Promise.resolve()), root);
  await act(async () => void (await vi.advanceTimersByTimeAsync(0)));
  fails = false;
  root.querySelector('button')?.click();
  await loaded;
  expect(root.innerHTML).toBe('');
});
