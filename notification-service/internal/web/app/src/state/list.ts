/** A list of reports that stays current: pages from the API, changes from the feed. */
import { batch, signal } from '@preact/signals';

import { must, reportService, type FeedEvent, type Report, type Status } from '../api/client';
import { debounce } from '../live/batch';
import { applyEvents, hides, watchFeed } from './feed';

export interface Filters {
  status: Status[];
  category: number[];
  q: string;
  /** West, south, east, north. */
  bbox: string;
}

export const noFilters: Filters = { status: [], category: [], q: '', bbox: '' };

const PAGE_SIZE = 50;
/** New reports are fetched together, within this time. */
const REFRESH_MS = 2_000;
/** Who has scrolled further than this is reading. */
const READING_PX = 200;
/** Where many are filed, they are not fetched one by one. */
const REFRESH_APART_MS = 10_000;
/** So many more than the feed has told of: reports come to the list a moment before their events. */
const AHEAD = 2;

/** A brief list has no descriptions. */
export function createList(of: 'all' | 'mine', size?: 'brief') {
  const reports = signal<Report[]>([]);
  const next = signal<string | undefined>();
  const state = signal<'loading' | 'ready' | 'failed'>('loading');
  const error = signal<unknown>();
  /** Reports that were filed since, and are not shown yet: by id, for the feed and a fresh page tell of the same. */
  const held = new Set<string>();
  const waiting = signal(0);
  let filters = noFilters;
  /** Counts requests of first pages: only the answer to the latest is shown. */
  let requests = 0;
  /** Counts lists: what was asked of the one before is not shown. A first page that is asked for meanwhile takes nothing from further ones. */
  let loads = 0;
  /** Further pages were asked for: a fresh first one is put before them. */
  let further = false;
  /** What happened since the last refresh: how many reports were filed, and whether more than that. */
  let filed = 0;
  let moreChanged = false;

  const fetchPage = (limit: number, cursor?: string) => {
    const query = {
      limit,
      ...(size && { brief: true }),
      status: filters.status,
      category: filters.category,
      ...(filters.q && { q: filters.q }),
      ...(cursor && { cursor }),
    };
    if (of === 'mine') return must(reportService.GET('/reports/mine', { params: { query } }));
    const all = { ...query, ...(filters.bbox && { bbox: filters.bbox }) };
    return must(reportService.GET('/reports', { params: { query: all } }));
  };

  const fetchInto = async (cursor: string | undefined, merge: (page: Report[]) => Report[], limit = PAGE_SIZE) => {
    const asked = loads;
    const request = cursor ? requests : ++requests;
    const isStale = () => asked !== loads || (!cursor && request !== requests);
    try {
      const page = await fetchPage(limit, cursor);
      if (isStale()) return;
      batch(() => {
        // A fresh first page, or a part of it, leaves what is behind it where it is.
        reports.value = merge(page.reports);
        if (cursor || (!further && limit === PAGE_SIZE && held.size === 0)) next.value = page.next_cursor;
        state.value = 'ready';
        error.value = undefined;
        waiting.value = held.size;
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
    further = false;
    held.clear();
    void fetchInto(undefined, (page) => page);
  };
  const more = () => {
    further = true;
    return fetchInto(next.value, (page) => uniqueById([...reports.value, ...page]));
  };
  /** What somebody reads must not be pushed away by what is put above it. */
  const isReading = () => of === 'all' && window.scrollY > READING_PX;
  /** Holds back what was filed since, while somebody reads. */
  const putFirst = (page: Report[], replaces: boolean) => {
    if (!isReading()) {
      held.clear();
      return replaces ? page : mergeFirstPage(reports.value, page);
    }
    const known = new Set(reports.value.map(({ id }) => id));
    const newest = reports.value[0]?.created_at ?? '';
    for (const { id, created_at } of page) if (!known.has(id) && created_at >= newest) held.add(id);
    const rest = page.filter(({ id }) => !held.has(id));
    if (rest.length === page.length) return replaces ? page : mergeFirstPage(reports.value, page);
    return rest.length === 0 ? reports.value : mergeFirstPage(reports.value, rest);
  };
  const refresh = () => fetchInto(undefined, (page) => putFirst(page, !further));
  /** Fetches what was filed since, and no more, while that is a small part of a page. */
  const refreshFiled = async () => {
    const limit = filed + AHEAD;
    const known = new Set(reports.value.map(({ id }) => id));
    let overlaps = true as boolean;
    const merge = (page: Report[]) => {
      overlaps = page.length < limit || page.some(({ id }) => known.has(id));
      return overlaps ? putFirst(page, false) : reports.value;
    };
    await fetchInto(undefined, merge, limit);
    if (!overlaps) await refresh();
  };
  const refreshSoon = debounce(
    () => {
      const part = !moreChanged && of === 'all' && reports.value.length > 0 && reports.value.length + filed <= 2 * PAGE_SIZE;
      void (part && filed + AHEAD < PAGE_SIZE ? refreshFiled() : refresh());
      filed = 0;
      moreChanged = false;
    },
    REFRESH_MS,
    REFRESH_APART_MS,
  );
  const refreshAllSoon = () => {
    moreChanged = true;
    refreshSoon();
  };

  /** Whether a report that there was may now be on the list, or no longer. */
  const addsOrRemoves = ({ type }: FeedEvent) =>
    type === 'report.moderated' || (type === 'report.status.updated' && filters.status.length > 0);

  const onEvents = (events: FeedEvent[]) => {
    // Whoever filed a report goes on seeing it.
    const gone = new Set(of === 'all' ? events.filter(hides).map(({ report_id }) => report_id) : []);
    const changed = reports.value.filter(({ id }) => !gone.has(id)).map((report) => applyEvents(report, events));
    if (changed.length < reports.value.length || changed.some((report, i) => report !== reports.value[i])) reports.value = changed;
    const known = new Set(reports.value.map(({ id }) => id));
    const created = events.filter(({ type, report_id }) => type === 'report.created' && !known.has(report_id));
    for (const id of gone) held.delete(id);
    if (isReading()) for (const { report_id } of created) held.add(report_id);
    else if (created.length > 0) {
      filed += created.length;
      refreshSoon();
    }
    waiting.value = held.size;
    if (events.some(addsOrRemoves)) refreshAllSoon();
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
      window.scrollTo(0, 0); // first: nobody reads further down then
      await refresh();
    },
    /** Keeps the list current until the returned function is called. */
    watch: () => watchFeed({ onEvents, onGap: refreshAllSoon }),
  };
}

export type ReportList = ReturnType<typeof createList>;

/** Puts a fresh first page in front of the pages that were loaded before. */
function mergeFirstPage(shown: Report[], page: Report[]): Report[] {
  const last = page.at(-1);
  if (!last) return page;
  const isBehind = (report: Report) => report.created_at <= last.created_at;
  return uniqueById([...page, ...shown.filter(isBehind)]);
}

function uniqueById(reports: Report[]): Report[] {
  return [...new Map(reports.map((report) => [report.id, report])).values()];
}
