/** The choices of a reader for this browser. */
import { effect } from '@preact/signals';

import { browserSetting } from './storage';

export type Theme = 'auto' | 'light' | 'dark';

export const preferences = {
  /** The language's tag, or empty for the browser's. */
  language: browserSetting<string>('language', ''),
  /** Read by public/early.js too. */
  theme: browserSetting<Theme>('theme', 'auto'),
  /** Whether single letters are keys of the workbench. */
  shortcuts: browserSetting<'on' | 'off'>('shortcuts', 'on'),
};

effect(() => {
  const theme = preferences.theme.value;
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
});

/** The theme that is shown: the chosen one, or else the system's. */
export function theme(): 'light' | 'dark' {
  const chosen = preferences.theme.value;
  if (chosen !== 'auto') return chosen;
  return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
}
