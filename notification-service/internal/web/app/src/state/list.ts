/** A list of reports that stays current: pages from the API, changes from the feed. */
import { batch, signal } from '@preact/signals';

import { must, reportService, type FeedEvent, type Report, type Status } from '../api/client';
import { soon } from '../live/batch';
import { applied, watchFeed } from './feed';

export interface Filters {
  status: Status[];
  category: number[];
  q: string;
  /** West, south, east, north. */
  bbox: string;
  oldestFirst: boolean;
}

export const noFilters: Filters = { status: [], category: [], q: '', bbox: '', oldestFirst: false };

const PAGE = 50;
/** Within how long new reports are fetched, together. */
const FRESH_MS = 2_000;

export function createList(of: 'all' | 'mine') {
  const reports = signal<Report[]>([]);
  const next = signal<string | undefined>();
  const state = signal<'loading' | 'ready' | 'failed'>('loading');
  const error = signal<unknown>();
  let filters = noFilters;
  /** Answers to what is no longer asked are dropped. */
  let asked = 0;

  const fetchPage = (cursor?: string) => {
    const query = {
      limit: PAGE,
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

  const run = async (cursor: string | undefined, join: (page: Report[]) => Report[]) => {
    const mine = ++asked;
    try {
      const page = await fetchPage(cursor);
      if (mine !== asked) return;
      batch(() => {
        // A fresh first page leaves the pages behind it where they are.
        if (cursor || reports.value.length <= PAGE) next.value = page.next_cursor;
        reports.value = join(page.reports);
        state.value = 'ready';
        error.value = undefined;
      });
    } catch (failure) {
      if (mine !== asked) return;
      batch(() => {
        state.value = 'failed';
        error.value = failure;
      });
    }
  };

  const load = (wanted: Filters) => {
    // It may be on its way since the page began.
    if (asked > 0 && state.value === 'loading' && JSON.stringify(wanted) === JSON.stringify(filters)) return;
    filters = wanted;
    next.value = undefined;
    state.value = 'loading';
    void run(undefined, (page) => page);
  };
  const more = () => run(next.value, (page) => unique([...reports.value, ...page]));
  const refresh = () => run(undefined, (page) => (reports.value.length > PAGE ? freshen(reports.value, page, filters.oldestFirst) : page));
  const refreshSoon = soon(() => void refresh(), FRESH_MS);

  const onEvents = (events: FeedEvent[]) => {
    const changed = reports.value.map((report) => applied(report, events));
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
function freshen(shown: Report[], page: Report[], oldestFirst: boolean): Report[] {
  const last = page.at(-1);
  if (!last) return page;
  const behind = (report: Report) => (oldestFirst ? report.created_at >= last.created_at : report.created_at <= last.created_at);
  return unique([...page, ...shown.filter(behind)]);
}

function unique(reports: Report[]): Report[] {
  return [...new Map(reports.map((report) => [report.id, report])).values()];
}
