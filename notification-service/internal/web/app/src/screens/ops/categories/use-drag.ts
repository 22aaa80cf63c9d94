import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/**
 * Lets the rows of a list be dragged by a finger or the mouse: the dragged one takes
 * the place that it is over. A row that moves in the document loses the pointer, so
 * the window follows it.
 */
export function useDrag(list: RefObject<HTMLElement | null>, move: (key: string, to: number) => void) {
  const [dragged, setDragged] = useState<string>();
  const latest = useRef(move);
  latest.current = move;
  useEffect(() => {
    if (dragged === undefined) return;
    const follow = ({ clientY }: PointerEvent) => {
      const rows = [...(list.current?.children ?? [])] as HTMLElement[];
      const from = rows.findIndex((row) => row.dataset.key === dragged);
      const middle = (row: HTMLElement) => row.getBoundingClientRect().top + row.offsetHeight / 2;
      const to = rows.filter((row, i) => i !== from && middle(row) < clientY).length;
      if (from >= 0 && to !== from) latest.current(dragged, to);
    };
    const end = () => setDragged(undefined);
    window.addEventListener('pointermove', follow);
    window.addEventListener('pointerup', end);
    window.addEventListener('pointercancel', end);
    return () => {
      window.removeEventListener('pointermove', follow);
      window.removeEventListener('pointerup', end);
      window.removeEventListener('pointercancel', end);
    };
  }, [dragged]);
  const start = (event: PointerEvent, key: string) => {
    if (event.button !== 0) return;
    event.preventDefault(); // no text is selected
    setDragged(key);
  };
  return { dragged, start };
}
