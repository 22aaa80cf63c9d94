/** The content of a list of reports, and how each event changes it. */
import type { FeedEvent, Figures, Report } from '../api/client';
import { applyEvents, hides } from './feed';
import { uniqueById } from './unique';

export interface ListState {
  reports: Report[];
  /** The cursor of the page behind these reports. */
  next: string | undefined;
  state: 'loading' | 'ready' | 'failed';
  error: unknown;
  /** Those of the whole city, as they came last. */
  figures: Figures | undefined;
  /** Ids of newer reports that are not shown yet: the feed and a fresh page may name the same one. */
  held: ReadonlySet<string>;
  /** Whether pages behind the first were asked for: a fresh first page is then put before them. */
  further: boolean;
  /** In any other order new reports are not the first: they come with the next whole page, and are not held. */
  newestFirst: boolean;
}

export const initial: ListState = {
  reports: [],
  next: undefined,
  state: 'loading',
  error: undefined,
  figures: undefined,
  held: new Set(),
  further: false,
  newestFirst: true,
};

/** A page of the API. */
export interface Page {
  reports: Report[];
  next_cursor?: string | undefined;
  figures?: Figures | undefined;
}

export type Change =
  /** Other filters were chosen. The reports stay until the first page of the new ones is here. */
  | { type: 'load'; newestFirst: boolean }
  /** The page behind is asked for. */
  | { type: 'more' }
  /** That page is here. */
  | { type: 'behind'; page: Page }
  /**
   * A fresh first page is here, or only the part of it with what is newest.
   * While somebody reads, new reports are held.
   */
  | { type: 'first'; page: Page; part: boolean; reading: boolean }
  | { type: 'failed'; error: unknown }
  /** The feed's events; the reporter goes on seeing a report that was hidden. */
  | { type: 'events'; events: FeedEvent[]; own: boolean; reading: boolean };

/** The list after a change; its reports are the very same array if they stay as they are. */
export function reduce(before: ListState, change: Change): ListState {
  switch (change.type) {
    case 'load':
      return { ...initial, reports: before.reports, error: before.error, figures: before.figures, newestFirst: change.newestFirst };
    case 'more':
      return { ...before, further: true };
    case 'behind':
      return {
        ...ready(before),
        reports: uniqueById([...before.reports, ...change.page.reports]),
        next: change.page.next_cursor,
      };
    case 'first':
      return withFirst({ ...before, figures: change.page.figures ?? before.figures }, change.page, change.part, change.reading);
    case 'failed':
      return { ...before, state: 'failed', error: change.error };
    case 'events':
      return withEvents(before, change.events, change.own, change.reading);
  }
}

const ready = (before: ListState): ListState => ({ ...before, state: 'ready', error: undefined });

function withFirst(before: ListState, page: Page, part: boolean, reading: boolean): ListState {
  if (!before.newestFirst) {
    const rest = before.further ? before.reports.filter(({ id }) => !page.reports.some((fresh) => fresh.id === id)) : [];
    return { ...ready(before), reports: [...page.reports, ...rest], next: before.further ? before.next : page.next_cursor };
  }
  // The first page of other filters is shown as it is, wherever the reader was in the old list.
  const held = reading && before.state !== 'loading' ? newer(before, page.reports) : new Set<string>();
  const rest = page.reports.filter(({ id }) => !held.has(id));
  const whole = rest.length === page.reports.length;
  const merged = rest.length > 0 || whole ? mergeFirstPage(before.reports, rest) : before.reports;
  return {
    ...ready(before),
    held,
    reports: whole && !part && !before.further ? page.reports : merged,
    // The cursor changes only with a whole first page that is shown as it came.
    next: part || before.further || held.size > 0 ? before.next : page.next_cursor,
  };
}

/** The reports that are held once a page is here. */
function newer({ reports, held }: ListState, page: Report[]): Set<string> {
  const known = new Set(reports.map(({ id }) => id));
  const newest = reports[0]?.created_at ?? '';
  return new Set([...held, ...page.filter(({ id, created_at }) => !known.has(id) && created_at >= newest).map(({ id }) => id)]);
}

function withEvents(before: ListState, events: FeedEvent[], own: boolean, reading: boolean): ListState {
  const gone = new Set(own ? [] : events.filter(hides).map(({ report_id }) => report_id));
  const changed = before.reports.filter(({ id }) => !gone.has(id)).map((report) => applyEvents(report, events));
  const same = changed.length === before.reports.length && changed.every((report, i) => report === before.reports[i]);
  const held = new Set([...before.held].filter((id) => !gone.has(id)));
  if (reading && before.newestFirst) for (const { report_id } of filed(before, events)) if (!gone.has(report_id)) held.add(report_id);
  return { ...before, reports: same ? before.reports : changed, held };
}

/** Events about new reports that are not shown. */
export function filed({ reports }: ListState, events: FeedEvent[]): FeedEvent[] {
  const known = new Set(reports.map(({ id }) => id));
  return events.filter(({ type, report_id }) => type === 'report.created' && !known.has(report_id));
}

/** Puts a fresh first page in front of the pages that were loaded before. */
function mergeFirstPage(shown: Report[], page: Report[]): Report[] {
  const last = page.at(-1);
  if (!last) return page;
  const isBehind = (report: Report) => report.created_at <= last.created_at;
  return uniqueById([...page, ...shown.filter(isBehind)]);
}
