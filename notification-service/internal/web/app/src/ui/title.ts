import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

/** The subject of the shown screen, where its own name does not say it. */
export const subject = signal<string | undefined>();

/** Names the tab, and with it the entry in the browser's history, after what is shown. */
export function useSubject(text: string | undefined): void {
  useEffect(() => {
    subject.value = text;
    return () => (subject.value = undefined);
  }, [text]);
}
