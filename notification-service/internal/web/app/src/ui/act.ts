import { useRef, useState } from 'preact/hooks';

/** An act of the reader: one at a time, and what went wrong with the last one. */
export function useAct() {
  const [busy, setBusy] = useState(false);
  const running = useRef(false);
  const [error, setError] = useState<unknown>();
  const run = async (act: () => Promise<unknown>) => {
    if (running.current) return;
    running.current = true;
    setBusy(true);
    await act().then(() => setError(undefined), setError);
    running.current = false;
    setBusy(false);
  };
  /** Does the act in place of a form that the browser sends. */
  const submits = (act: () => Promise<unknown>) => (event: Event) => {
    event.preventDefault();
    void run(act);
  };
  return { busy, error, setError, run, submits };
}
