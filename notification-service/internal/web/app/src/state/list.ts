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

export function createList(of: 'all' | 'mine') {
  const reports = signal<Report[]>([]);
  const next = signal<string | undefined>();
  const state = signal<'loading' | 'ready' | 'failed'>('loading');
  const error = signal<unknown>();
  let filters = noFilters;
  /** Counts requests: only the answer to the latest is shown. */
  let requests = 0;

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
    const request = ++requests;
    try {
      const page = await fetchPage(cursor);
      if (request !== requests) return;
      batch(() => {
        // A fresh first page leaves the pages behind it where they are.
        if (cursor || reports.value.length <= PAGE_SIZE) next.value = page.next_cursor;
        reports.value = merge(page.reports);
        state.value = 'ready';
        error.value = undefined;
      });
    } catch (failure) {
      if (request !== requests) return;
      batch(() => {
        state.value = 'failed';
        error.value = failure;
      });
    }
  };

  const load = (newFilters: Filters) => {
    // main.tsx may have asked for it before the screen did.
    if (requests > 0 && state.value === 'loading' && JSON.stringify(newFilters) === JSON.stringify(filters)) return;
    filters = newFilters;
    next.value = undefined;
    state.value = 'loading';
    void fetchInto(undefined, (page) => page);
  };
  const more = () => fetchInto(next.value, (page) => uniqueById([...reports.value, ...page]));
  const refresh = () =>
    fetchInto(undefined, (page) => (reports.value.length > PAGE_SIZE ? mergeFirstPage(reports.value, page, filters.oldestFirst) : page));
  const refreshSoon = debounce(() => void refresh(), REFRESH_MS);

  const onEvents = (events: FeedEvent[]) => {
    const changed = reports.value.map((report) => applyEvents(report, events));
    if (changed.some((report, i) => report !== reports.value[i])) reports.value = changed;
    if (events.some(({ type }) => type !== 'report.vote.received')) refreshSoon();
  };

  return {
    reports,
    next,
    state,
    error,
    load,
    more,
    refresh,
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
