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
 * every open page in the city gets the same event. Between two runs there are
 * at least apartMs.
 */
export function debounce(task: () => void, withinMs: number, apartMs = 0): () => void {
  let planned = false;
  let last = -Infinity;
  const run = () => {
    if (document.visibilityState !== 'visible') {
      document.addEventListener('visibilitychange', run, { once: true });
      return;
    }
    planned = false;
    last = Date.now();
    task();
  };
  return () => {
    if (planned) return;
    planned = true;
    const soonest = Math.max(0, last + apartMs - Date.now());
    setTimeout(run, soonest + Math.random() * withinMs);
  };
}
