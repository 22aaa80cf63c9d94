/** Keys that do something wherever the focus is, except where one writes. */
import { useEffect, useRef } from 'preact/hooks';

import { preferences } from '../state/preferences';

/** The elements into which letters and other keys are written. */
const WRITING = 'input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]';

/**
 * Calls handle for each key that is pressed alone. A dialog that is open has
 * its own keys. Who works by voice, or types where no field is, can switch
 * keys of a single letter off (WCAG 2.1.4).
 */
export function useShortcuts(handle: (key: string, event: KeyboardEvent) => void): void {
  const latest = useRef(handle);
  latest.current = handle;
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (document.querySelector('dialog[open]')) return;
      const target = event.target instanceof Element ? event.target : document.body;
      if (event.key !== 'Escape' && target.matches(WRITING)) return;
      if (event.key.length === 1 && preferences.shortcuts.value === 'off') return;
      latest.current(event.key, event);
    };
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, []);
}
