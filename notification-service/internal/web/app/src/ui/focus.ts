import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

/**
 * For a list whose rows may go: when the row that has the focus goes, the one
 * that takes its place gets it, or else the heading. Otherwise the keyboard
 * would begin at the top of the page again. Returns what to put on the list.
 */
export function useRowFocus(...changes: unknown[]) {
  const ref = useRef<HTMLUListElement>(null);
  const row = useRef<number | undefined>(undefined);

  useEffect(() => {
    // Who clicks elsewhere has left the list.
    const leave = ({ target }: Event) => {
      if (target instanceof Element && !target.closest('dialog') && !ref.current?.contains(target)) row.current = undefined;
    };
    document.addEventListener('pointerdown', leave);
    return () => document.removeEventListener('pointerdown', leave);
  }, []);

  useLayoutEffect(() => {
    if (row.current === undefined || document.activeElement !== document.body) return;
    const rows = [...(ref.current?.children ?? [])];
    const next = rows[Math.min(row.current, rows.length - 1)]?.querySelector<HTMLElement>('button');
    (next ?? document.querySelector<HTMLElement>('main h1'))?.focus();
  }, changes);

  const onFocusIn = ({ target }: FocusEvent) => {
    const rows = [...(ref.current?.children ?? [])];
    const at = rows.findIndex((each) => target instanceof Node && each.contains(target));
    row.current = at < 0 ? undefined : at;
  };
  return { ref, onFocusIn };
}
