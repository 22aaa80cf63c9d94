/** What a reader chose for this browser. */
import { effect, signal, type Signal } from '@preact/signals';

/** A signal that survives a reload, where storage is allowed. */
export function stored<T>(name: string, initial: T): Signal<T> {
  const key = `cityconnect.${name}`;
  const value = signal(read(key, initial));
  effect(() => {
    try {
      localStorage.setItem(key, typeof value.value === 'string' ? value.value : JSON.stringify(value.value));
    } catch {
      // Full or forbidden: it holds until the page goes.
    }
  });
  return value;
}

function read<T>(key: string, initial: T): T {
  try {
    const text = localStorage.getItem(key);
    if (text === null) return initial;
    return typeof initial === 'string' ? (text as T) : (JSON.parse(text) as T);
  } catch {
    return initial;
  }
}

export type Theme = 'auto' | 'light' | 'dark';

export const preferences = {
  /** The language's tag, or empty for the browser's. */
  language: stored('language', ''),
  /** Read by public/early.js too. */
  theme: stored<Theme>('theme', 'auto'),
};

effect(() => {
  const theme = preferences.theme.value;
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
});
