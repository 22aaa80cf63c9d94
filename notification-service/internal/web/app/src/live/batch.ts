/** How long events gather before the page changes: a burst is one repaint. */
const GATHER_MS = 50;

/** Returns a function that collects items and hands them on together. */
export function gather<T>(handle: (items: T[]) => void): (item: T) => void {
  let items: T[] = [];
  return (item) => {
    items.push(item);
    if (items.length > 1) return;
    setTimeout(() => {
      const ready = items;
      items = [];
      handle(ready);
    }, GATHER_MS);
  };
}

/**
 * Returns a function that runs task soon after a call, once for many calls,
 * and not before somebody looks at the page.
 */
export function soon(task: () => void, withinMs: number): () => void {
  let waiting = false;
  const run = () => {
    if (document.visibilityState !== 'visible') {
      document.addEventListener('visibilitychange', run, { once: true });
      return;
    }
    waiting = false;
    task();
  };
  return () => {
    if (waiting) return;
    waiting = true;
    // At random, since every open page in the city heard of the same thing.
    setTimeout(run, Math.random() * withinMs);
  };
}
