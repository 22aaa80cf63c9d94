import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import type { Task } from '../../api/client';
import { useMedia } from '../../ui/media';
import { go, setQuery } from '../../ui/router';
import { focusTask } from './table';

/** Table and report stand beside each other from this width on; below, one follows the other. */
const WIDE = '(width >= 64rem)';
/** The address follows the current row after this time: browsers refuse changes as fast as a held key repeats. */
const ADDRESS_MS = 300;

/** The element of the pane that gets the focus. */
export type PaneFocus = 'detail' | 'status' | 'note';
const SELECTORS: Record<PaneFocus, string> = { detail: 'h2', status: 'input[data-first]', note: 'textarea[data-internal]' };

/**
 * The current row of the table. The report beside the table, the address and the
 * focus follow it; it follows an address that names another report.
 *
 * @param list reads the rows as they are now.
 * @param query the address's, of which `report` names the report that is open.
 * @param filtered changes with the filters and the order; a change starts again from the top.
 */
export function useRow(list: () => Task[], query: URLSearchParams, filtered: string) {
  const tasks = list();
  const wide = useMedia(WIDE);
  const opened = query.get('report') ?? undefined;
  const [current, setCurrent] = useState(opened);
  /** The current row when an act ends, which may be another than when it began. */
  const latest = useRef(current);
  latest.current = current;
  const table = useRef<HTMLDivElement>(null);
  const pane = useRef<HTMLDivElement>(null);

  const first = useRef(true);
  useEffect(() => {
    if (!first.current) {
      // Other filters begin at the top, unless the address names a report of theirs.
      const named = opened !== current ? opened : undefined;
      setCurrent(named);
      if (!named && opened) setQuery({ report: '' });
    }
    first.current = false;
  }, [filtered]);

  // The report that this screen put into the address itself, and may have left since.
  const written = useRef(opened);
  useEffect(() => {
    if (opened !== undefined && opened !== written.current) setCurrent(opened);
    written.current = opened;
    // Back from the report, which may have left the list.
    if (opened === undefined && !wide && current && !focusTask(table.current, current)) focusHeading();
  }, [opened]);
  useEffect(() => {
    if (!current || current === opened || (!wide && !opened)) return;
    const timer = setTimeout(() => {
      written.current = current;
      setQuery({ report: current });
    }, ADDRESS_MS);
    return () => clearTimeout(timer);
  }, [current, wide]);

  const at = tasks.findIndex(({ id }) => id === current);
  // Where the current row is, or was when it was last in the list.
  const place = useRef(0);
  if (at >= 0) place.current = at;
  const [before, after] = at >= 0 ? [at - 1, at + 1] : [place.current - 1, place.current];
  const shown = wide || opened ? current : undefined;

  const had = useRef(0);
  useLayoutEffect(() => {
    // The last row is gone, and the focus with it.
    if (tasks.length === 0 && had.current > 0 && document.activeElement === document.body) focusHeading();
    had.current = tasks.length;
  }, [tasks.length]);

  /** Where the focus goes once it has been drawn. */
  const awaited = useRef<PaneFocus | undefined>(undefined);
  useLayoutEffect(() => {
    const target = awaited.current && pane.current?.querySelector<HTMLElement>(SELECTORS[awaited.current]);
    if (!target) return;
    awaited.current = undefined;
    target.focus();
  });

  /** Shows a report in the pane, with the focus there. */
  const open = (id: string | undefined, focus: PaneFocus = 'detail') => {
    if (!id) return;
    const drawn = id === shown ? pane.current?.querySelector<HTMLElement>(SELECTORS[focus]) : undefined;
    if (drawn) return drawn.focus();
    awaited.current = focus;
    setCurrent(id);
    if (!wide && !opened) go('queue', { ...Object.fromEntries(query), report: id });
  };
  /** Makes a row the current one; where the list is not seen, its report is shown. */
  const goTo = (row: number) => {
    const id = tasks[Math.min(Math.max(row, 0), tasks.length - 1)]?.id;
    if (!id) return;
    if (wide || !opened) focusTask(table.current, id);
    else open(id);
  };
  /** Goes back from the report to its row. */
  const close = () => {
    if (!wide && opened) setQuery({ report: '' });
    else focusTask(table.current, current ?? tasks[0]?.id);
  };
  /** Goes on to the next report after this one was moved; the next has its place if it has left the list. */
  const advance = () => {
    // The answer took its time: the reader has gone on already.
    if (latest.current !== current) return;
    const rows = list();
    const stays = rows.some(({ id }) => id === current);
    const next = rows[Math.min(place.current + (stays ? 1 : 0), rows.length - 1)];
    if (!next) {
      if (!wide) setQuery({ report: '' });
      focusHeading();
    } else if (wide) focusTask(table.current, next.id);
    else open(next.id);
  };
  /** Puts the focus on the row at the current place, or on the heading if there is none. */
  const focusPlace = () => {
    const rows = list();
    if (!focusTask(table.current, rows[Math.min(place.current, rows.length - 1)]?.id)) focusHeading();
  };
  return {
    table,
    pane,
    current,
    setCurrent,
    /** The report in the pane. */
    shown,
    wide,
    /** The current row, if it is in the list. */
    row: tasks[at],
    /** The current row, or the first one as long as there is none. */
    atHand: tasks[at] ?? (current === undefined ? tasks[0] : undefined),
    before,
    after,
    open,
    goTo,
    close,
    advance,
    focusPlace,
  };
}

function focusHeading(): void {
  document.querySelector<HTMLElement>('main h1')?.focus();
}
