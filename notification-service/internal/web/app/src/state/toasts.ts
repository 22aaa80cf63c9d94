/** Short messages that appear, are read out, and disappear. */
import { signal } from '@preact/signals';

export interface Toast {
  id: number;
  text: string;
  /** Where a click leads. */
  href?: string;
}

/** More at once distract; the panel of notifications has them all. */
const MAX_SHOWN = 3;
const SHOWN_MS = 7_000;

export const toasts = signal<Toast[]>([]);
const timers = new Map<number, number>();
let last = 0;

/** Shows text for a while. A toast with the same link is replaced. */
export function toast(text: string, href?: string): void {
  const shown = href ? toasts.value.find((each) => each.href === href) : undefined;
  const id = shown?.id ?? ++last;
  if (shown) toasts.value = toasts.value.map((each) => (each === shown ? { ...shown, text } : each));
  else toasts.value = [...toasts.value, href ? { id, text, href } : { id, text }];
  for (const surplus of toasts.value.slice(0, -MAX_SHOWN)) dismiss(surplus.id);
  clearTimeout(timers.get(id));
  timers.set(
    id,
    window.setTimeout(() => dismiss(id), SHOWN_MS),
  );
}

export function dismiss(id: number): void {
  clearTimeout(timers.get(id));
  timers.delete(id);
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}
