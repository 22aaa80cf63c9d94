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

/** Keys that were pressed while an act had no answer, in their order; absent while none is held. */
let held: KeyboardEvent[] | undefined;
let acts = 0;

/**
 * Does an act, and holds the keys that are pressed before it has ended: they are meant
 * for what comes after it, and are pressed then. A click takes them back, and so do
 * Escape and an act that fails.
 */
export async function holdingKeys<T>(act: () => Promise<T>): Promise<T> {
  acts++;
  if (!held) hold();
  try {
    return await act();
  } catch (failure) {
    held?.splice(0);
    throw failure;
  } finally {
    acts--;
  }
}

function hold(): void {
  const keys: KeyboardEvent[] = (held = []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (!event.isTrusted || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape') return drop();
    event.preventDefault();
    event.stopImmediatePropagation();
    keys.push(event);
  };
  const drop = () => void keys.splice(0);
  document.addEventListener('keydown', onKeyDown, true);
  document.addEventListener('pointerdown', drop, true);
  const release = async () => {
    do {
      await drawn();
      const event = acts === 0 ? keys.shift() : undefined;
      if (event && !press(event)) drop();
    } while (acts > 0 || keys.length > 0);
    held = undefined;
    document.removeEventListener('keydown', onKeyDown, true);
    document.removeEventListener('pointerdown', drop, true);
  };
  void release();
}

/** Resolves once all that a key or an answer has changed is drawn. */
const drawn = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

/** Presses a key again, with what the browser itself does with it; false if that cannot be done. */
function press({ key, shiftKey }: KeyboardEvent): boolean {
  const target = document.activeElement ?? document.body;
  if (!target.dispatchEvent(new KeyboardEvent('keydown', { key, shiftKey, bubbles: true, cancelable: true }))) return true;
  if (target.matches(WRITING)) return key.length === 1 && document.execCommand('insertText', false, key);
  const isInput = target instanceof HTMLInputElement;
  if (key === 'Enter' && isInput) target.form?.requestSubmit();
  else if ((key === ' ' || key === 'Enter') && target instanceof HTMLElement) target.click();
  else if (isInput && target.type === 'radio' && key.startsWith('Arrow')) {
    const all = [...(target.form?.querySelectorAll<HTMLInputElement>(`[name="${target.name}"]`) ?? [])];
    const next = all.at((all.indexOf(target) + (['ArrowDown', 'ArrowRight'].includes(key) ? 1 : -1)) % all.length);
    next?.focus();
    next?.click();
  } else return false;
  return true;
}
