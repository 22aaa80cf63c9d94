import { useEffect, useState } from 'preact/hooks';

/** How often figures are read that no stream sends. */
export const POLL_MS = 2_000;

export interface Polled<T> {
  value: T | undefined;
  error: unknown;
  /** Reads now. */
  refresh(): void;
}

/** Reads something at once and every so often while the page is visible. */
export function usePoll<T>(read: () => Promise<T>, deps: unknown[] = [], everyMs = POLL_MS): Polled<T> {
  const [value, setValue] = useState<T>();
  const [error, setError] = useState<unknown>();
  const [refreshes, setRefreshes] = useState(0);
  useEffect(() => {
    let timer: number;
    let stopped = false;
    const tick = async () => {
      // A reading that is due while nobody looks is made as soon as somebody does.
      if (document.visibilityState !== 'visible') return document.addEventListener('visibilitychange', tick, { once: true });
      await read().then(
        (fresh) => {
          if (stopped) return;
          setValue(fresh);
          setError(undefined);
        },
        (failure: unknown) => !stopped && setError(failure),
      );
      if (!stopped) timer = window.setTimeout(tick, everyMs);
    };
    void tick();
    return () => {
      stopped = true;
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', tick);
    };
  }, [...deps, refreshes]);
  return { value, error, refresh: () => setRefreshes(refreshes + 1) };
}
