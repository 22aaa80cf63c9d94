/** For how long events are collected: a burst of them is one repaint. */
const COLLECT_MS = 50;

/** Returns a function that collects items and hands them on together. */
export function collect<T>(handle: (items: T[]) => void): (item: T) => void {
  let items: T[] = [];
  return (item) => {
    items.push(item);
    if (items.length > 1) return;
    setTimeout(() => {
      const ready = items;
      items = [];
      handle(ready);
    }, COLLECT_MS);
  };
}

/**
 * Returns a function that runs task once for many calls: at a random moment
 * within the given time, and not while the page is hidden. At random, because
 * every open page in the city gets the same event.
 */
export function debounce(task: () => void, withinMs: number): () => void {
  let planned = false;
  const run = () => {
    if (document.visibilityState !== 'visible') {
      document.addEventListener('visibilitychange', run, { once: true });
      return;
    }
    planned = false;
    task();
  };
  return () => {
    if (planned) return;
    planned = true;
    setTimeout(run, Math.random() * withinMs);
  };
}
