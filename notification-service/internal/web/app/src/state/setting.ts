/** A setting that is being edited. It is kept while the page is open: one may look at another screen, and come back. */
import { computed, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

import { session } from './session';

/** Whether two values are the same, as they would be sent. */
const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

export function createEdited<T>(get: () => Promise<T>) {
  /** As it was read. */
  const base = signal<T>();
  const value = signal<T>();
  const error = signal<unknown>();
  /** Whether somebody else has saved another one since it was read. */
  const stale = signal(false);
  const changed = computed(() => base.value !== undefined && !same(base.value, value.value));
  let owner: string | undefined;

  const show = (read: T) => {
    base.value = value.value = read;
    error.value = undefined;
    stale.value = false;
  };
  const fail = (failure: unknown) => void (error.value = failure);
  return {
    value,
    error,
    stale,
    changed,
    set: (edited: T) => void (value.value = edited),
    show,
    fail,
    discard: () => get().then(show, fail),
    /** Reads it. What its user has changed stays. */
    load() {
      const user = session.value?.sub;
      if (owner !== user) base.value = value.value = undefined;
      owner = user;
      return get().then((read) => {
        if (!changed.value) show(read);
        else stale.value = !same(read, base.value);
      }, fail);
    },
  };
}

export type Edited<T> = ReturnType<typeof createEdited<T>>;

/** Reads the setting. Until the changes are saved, the browser asks before the page is left. */
export function useEdited(edited: Pick<Edited<unknown>, 'changed'> & { load(): Promise<void> }): void {
  useEffect(() => {
    void edited.load();
    const ask = (event: BeforeUnloadEvent) => edited.changed.value && event.preventDefault();
    window.addEventListener('beforeunload', ask);
    return () => window.removeEventListener('beforeunload', ask);
  }, [edited]);
}
