/** A list of reports that stays current: pages from the API, changes from the feed. */
import { batch, signal } from '@preact/signals';

import { must, reportService, type FeedEvent, type Report, type Status } from '../api/client';
import { debounce } from '../live/batch';
import { applyEvents, watchFeed } from './feed';

export interface Filters {
  status: Status[];
  category: number[];
  q: string;
  /** West, south, east, north. */
  bbox: string;
  oldestFirst: boolean;
}

export const noFilters: Filters = { status: [], category: [], q: '', bbox: '', oldestFirst: false };

const PAGE_SIZE = 50;
/** New reports are fetched together, within this time. */
const REFRESH_MS = 2_000;
/** Who has scrolled further than this is reading. */
const READING_PX = 200;
/** A page of reports has up to 77 kB: where many are filed, it is not fetched for each of them. */
const REFRESH_APART_MS = 10_000;

export function createList(of: 'all' | 'mine') {
  const reports = signal<Report[]>([]);
  const next = signal<string | undefined>();
  const state = signal<'loading' | 'ready' | 'failed'>('loading');
  const error = signal<unknown>();
  /** Reports that were filed since, and are not shown yet. */
  const waiting = signal(0);
  let filters = noFilters;
  /** Counts requests of first pages: only the answer to the latest is shown. */
  let requests = 0;
  /** Counts lists: what was asked of the one before is not shown. A first page that is asked for meanwhile takes nothing from further ones. */
  let loads = 0;

  const fetchPage = (cursor?: string) => {
    const query = {
      limit: PAGE_SIZE,
      status: filters.status,
      category: filters.category,
      ...(filters.q && { q: filters.q }),
      ...(cursor && { cursor }),
    };
    if (of === 'mine') return must(reportService.GET('/reports/mine', { params: { query } }));
    const order = filters.oldestFirst ? ('oldest' as const) : ('newest' as const);
    const all = { ...query, order, ...(filters.bbox && { bbox: filters.bbox }) };
    return must(reportService.GET('/reports', { params: { query: all } }));
  };

  const fetchInto = async (cursor: string | undefined, merge: (page: Report[]) => Report[]) => {
    const asked = loads;
    const request = cursor ? requests : ++requests;
    const isStale = () => asked !== loads || (!cursor && request !== requests);
    try {
      const page = await fetchPage(cursor);
      if (isStale()) return;
      batch(() => {
        // A fresh first page leaves the pages behind it where they are.
        if (cursor || reports.value.length <= PAGE_SIZE) next.value = page.next_cursor;
        reports.value = merge(page.reports);
        state.value = 'ready';
        error.value = undefined;
        if (!cursor) waiting.value = 0;
      });
    } catch (failure) {
      if (isStale()) return;
      batch(() => {
        state.value = 'failed';
        error.value = failure;
      });
    }
  };

  const load = (newFilters: Filters) => {
    const same = requests > 0 && JSON.stringify(newFilters) === JSON.stringify(filters);
    // main.tsx may have asked for it before the screen did.
    if (same && state.value === 'loading') return;
    // Back on the screen: all pages that were loaded are shown at once.
    if (same && state.value === 'ready') return void refresh();
    filters = newFilters;
    next.value = undefined;
    state.value = 'loading';
    loads++;
    void fetchInto(undefined, (page) => page);
  };
  const more = () => fetchInto(next.value, (page) => uniqueById([...reports.value, ...page]));
  const refresh = () =>
    fetchInto(undefined, (page) => (reports.value.length > PAGE_SIZE ? mergeFirstPage(reports.value, page, filters.oldestFirst) : page));
  const refreshSoon = debounce(() => void refresh(), REFRESH_MS, REFRESH_APART_MS);

  /** Whether a report that there was may now be on the list, or no longer. */
  const addsOrRemoves = ({ type }: FeedEvent) => type === 'report.status.updated' && filters.status.length > 0;
  const newestFirst = () => of === 'all' && !filters.oldestFirst;

  const onEvents = (events: FeedEvent[]) => {
    const changed = reports.value.map((report) => applyEvents(report, events));
    if (changed.some((report, i) => report !== reports.value[i])) reports.value = changed;
    const filed = events.filter(({ type }) => type === 'report.created').length;
    // What somebody reads must not be pushed away by what is put above it.
    if (filed > 0 && newestFirst() && window.scrollY > READING_PX) waiting.value += filed;
    else if (filed > 0) refreshSoon();
    if (events.some(addsOrRemoves)) refreshSoon();
  };

  return {
    reports,
    next,
    state,
    error,
    load,
    more,
    refresh,
    waiting,
    /** Shows what was filed since, and goes to where it is. */
    async showWaiting() {
      await refresh();
      window.scrollTo(0, 0);
    },
    /** Keeps the list current until the returned function is called. */
    watch: () => watchFeed({ onEvents, onGap: refreshSoon }),
  };
}

export type ReportList = ReturnType<typeof createList>;

/** Puts a fresh first page in front of the pages that were loaded before. */
function mergeFirstPage(shown: Report[], page: Report[], oldestFirst: boolean): Report[] {
  const last = page.at(-1);
  if (!last) return page;
  const isBehind = (report: Report) => (oldestFirst ? report.created_at >= last.created_at : report.created_at <= last.created_at);
  return uniqueById([...page, ...shown.filter(isBehind)]);
}

function uniqueById(reports: Report[]): Report[] {
  return [...new Map(reports.map((report) => [report.id, report])).values()];
}
