import { useEffect, useState } from 'preact/hooks';

/** How often figures are read that no stream brings. */
export const POLL_MS = 2_000;

export interface Polled<T> {
  value: T | undefined;
  error: unknown;
  again(): void;
}

/** Reads something again and again while somebody looks at it. */
export function usePoll<T>(read: () => Promise<T>, deps: unknown[] = []): Polled<T> {
  const [value, setValue] = useState<T>();
  const [error, setError] = useState<unknown>();
  const [asked, ask] = useState(0);
  useEffect(() => {
    let timer: number;
    let gone = false;
    const tick = async () => {
      if (document.visibilityState === 'visible') {
        await read().then(
          (fresh) => {
            if (gone) return;
            setValue(fresh);
            setError(undefined);
          },
          (failure: unknown) => !gone && setError(failure),
        );
      }
      if (!gone) timer = window.setTimeout(tick, POLL_MS);
    };
    void tick();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [...deps, asked]);
  return { value, error, again: () => ask(asked + 1) };
}
