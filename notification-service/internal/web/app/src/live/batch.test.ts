import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { collect, debounce } from './batch';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('collect', () => {
  test('hands items on together, in their order, 50 ms after the first', () => {
    const handle = vi.fn();
    const add = collect<number>(handle);
    add(1);
    vi.advanceTimersByTime(49);
    add(2);
    expect(handle).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    add(3);
    vi.advanceTimersByTime(50);
    expect(handle.mock.calls).toEqual([[[1, 2]], [[3]]]);
  });
});

describe('debounce', () => {
  const look = (state: DocumentVisibilityState) => {
    vi.spyOn(document, 'visibilityState', 'get').mockReturnValue(state);
    document.dispatchEvent(new Event('visibilitychange'));
  };

  test('runs once for many calls, within the time', () => {
    const task = vi.fn();
    const ask = debounce(task, 1_000);
    for (let i = 0; i < 5; i++) ask();
    expect(task).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1_000);
    expect(task).toHaveBeenCalledOnce();
    ask();
    vi.advanceTimersByTime(1_000);
    expect(task).toHaveBeenCalledTimes(2);
  });

  test('runs at a random moment, because every open page calls it at once', () => {
    const task = vi.fn();
    vi.spyOn(Math, 'random').mockReturnValue(0.25);
    debounce(task, 1_000)();
    vi.advanceTimersByTime(249);
    expect(task).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(task).toHaveBeenCalledOnce();
  });

  test('keeps its runs apart, whatever happens in between', () => {
    const task = vi.fn();
    vi.spyOn(Math, 'random').mockReturnValue(0);
    const ask = debounce(task, 1_000, 10_000);
    for (let second = 0; second < 59; second++) {
      ask();
      vi.advanceTimersByTime(1_000);
    }
    expect(task).toHaveBeenCalledTimes(6);
  });

  test('waits until the page is looked at', () => {
    const task = vi.fn();
    look('hidden');
    debounce(task, 1_000)();
    vi.advanceTimersByTime(60_000);
    expect(task).not.toHaveBeenCalled();
    look('visible');
    expect(task).toHaveBeenCalledOnce();
  });
});
