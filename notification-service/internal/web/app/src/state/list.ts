/** A list of reports that stays current: pages from the API, changes from the feed. */
import { computed, signal } from '@preact/signals';

import { must, reportService, type FeedEvent, type Status } from '../api/client';
import { debounce } from '../live/batch';
import { watchFeed } from './feed';
import { filed, initial, reduce, type Change, type Page } from './list-state';

export interface Filters {
  status: Status[];
  category: number[];
  q: string;
  /** West, south, east, north. */
  bbox: string;
  order: 'newest' | 'changed' | 'score';
}

export const noFilters: Filters = { status: [], category: [], q: '', bbox: '', order: 'newest' };

const PAGE_SIZE = 20;
/** New reports are fetched together, within this time. */
const REFRESH_MS = 2_000;
/** A reader who has scrolled further than this is reading. */
const READING_PX = 200;
/** Where many are filed, they are not fetched one by one. */
const REFRESH_APART_MS = 10_000;
/** How far the list may be ahead of the feed: reports are listed a moment before their events arrive. */
const AHEAD = 2;

/** A brief list has no descriptions. */
export function createList(of: 'all' | 'mine', size?: 'brief') {
  const list = signal(initial);
  const apply = (change: Change) => (list.value = reduce(list.value, change));
  let filters = noFilters;
  /** Counts requests of first pages: only the answer to the latest is shown. */
  let requests = 0;
  /** Counts lists: an answer for an earlier one is not shown. A first page that is asked for in between takes nothing from further ones. */
  let loads = 0;
  /** The events since the last refresh: how many reports were filed, and whether there were others. */
  let filedSince = 0;
  let moreChanged = false;

  const fetchPage = (limit: number, cursor?: string): Promise<Page> => {
    const query = {
      limit,
      ...(size && { brief: true }),
      status: filters.status,
      category: filters.category,
      ...(filters.q && { q: filters.q }),
      ...(cursor && { cursor }),
    };
    if (of === 'mine') return must(reportService.GET('/reports/mine', { params: { query } }));
    const all = {
      ...query,
      ...(!cursor && { figures: true }),
      ...(filters.bbox && { bbox: filters.bbox }),
      ...(filters.order !== 'newest' && { order: filters.order }),
    };
    return must(reportService.GET('/reports', { params: { query: all } }));
  };

  /** Asks for a page, and applies what `answered` makes of it unless it was overtaken. */
  const fetchInto = async (cursor: string | undefined, answered: (page: Page) => void, limit = PAGE_SIZE) => {
    const asked = loads;
    const request = cursor ? requests : ++requests;
    const isStale = () => asked !== loads || (!cursor && request !== requests);
    try {
      const page = await fetchPage(limit, cursor);
      if (!isStale()) answered(page);
    } catch (error) {
      if (!isStale()) apply({ type: 'failed', error });
    }
  };

  /** Rows that are being read must not be pushed away by new ones above them. */
  const isReading = () => of === 'all' && window.scrollY > READING_PX;
  const showFirst = (page: Page, part = false) => apply({ type: 'first', page, part, reading: isReading() });

  const load = (newFilters: Filters) => {
    const same = requests > 0 && JSON.stringify(newFilters) === JSON.stringify(filters);
    // main.tsx may have asked for it before the screen did.
    if (same && list.value.state === 'loading') return;
    // Back on the screen: all pages that were loaded are shown at once.
    if (same && list.value.state === 'ready') return void refresh();
    filters = newFilters;
    loads++;
    apply({ type: 'load', newestFirst: filters.order === 'newest' });
    void refresh();
  };
  const more = () => {
    apply({ type: 'more' });
    return fetchInto(list.value.next, (page) => apply({ type: 'behind', page }));
  };
  const refresh = () => fetchInto(undefined, (page) => showFirst(page));
  /** Fetches what was filed since, and no more, while that is a small part of a page. */
  const refreshFiled = async () => {
    const limit = filedSince + AHEAD;
    let overlaps = true as boolean;
    const showPart = (page: Page) => {
      const known = new Set(list.value.reports.map(({ id }) => id));
      overlaps = page.reports.length < limit || page.reports.some(({ id }) => known.has(id));
      if (overlaps) showFirst(page, true);
    };
    await fetchInto(undefined, showPart, limit);
    if (!overlaps) await refresh();
  };
  const refreshSoon = debounce(
    () => {
      const shown = list.value.reports.length;
      const part = !moreChanged && of === 'all' && list.value.newestFirst && shown > 0 && shown + filedSince <= 2 * PAGE_SIZE;
      void (part && filedSince + AHEAD < PAGE_SIZE ? refreshFiled() : refresh());
      filedSince = 0;
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
    type === 'report.moderated' || type === 'report.corrected' || (type === 'report.status.updated' && filters.status.length > 0);

  const onEvents = (events: FeedEvent[]) => {
    const reading = isReading();
    const created = filed(list.value, events).length;
    apply({ type: 'events', events, own: of === 'mine', reading });
    if (created > 0 && !reading) {
      filedSince += created;
      refreshSoon();
    }
    if (events.some(addsOrRemoves)) refreshAllSoon();
  };

  return {
    reports: computed(() => list.value.reports),
    next: computed(() => list.value.next),
    state: computed(() => list.value.state),
    error: computed(() => list.value.error),
    figures: computed(() => list.value.figures),
    /** How many newer reports are held until they are asked for. */
    waiting: computed(() => list.value.held.size),
    load,
    more,
    refresh,
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
