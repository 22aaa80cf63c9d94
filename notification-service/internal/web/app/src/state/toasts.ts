/** Short messages that come, are read out, and go. */
import { signal } from '@preact/signals';

export interface Toast {
  id: number;
  text: string;
  /** Where a click leads. */
  href?: string;
}

/** More at once are noise; the panel has them all. */
const MOST = 3;
const SHOWN_MS = 7_000;

export const toasts = signal<Toast[]>([]);
let last = 0;

export function toast(text: string, href?: string): void {
  const id = ++last;
  toasts.value = [...toasts.value.slice(1 - MOST), href ? { id, text, href } : { id, text }];
  setTimeout(() => dismiss(id), SHOWN_MS);
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}
