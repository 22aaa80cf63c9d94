/** The officials' queue: pages of it that stay current, what is selected in it, and moves of many reports. */
import { batch, signal } from '@preact/signals';

import {
  Failure,
  must,
  reportService,
  type BulkMove,
  type FeedEvent,
  type MoveResult,
  type QueueCounts,
  type Status,
  type Task,
} from '../api/client';
import { debounce } from '../live/batch';
import { randomKey } from './draft';
import { applyEvents, watchFeed } from './feed';
import { fits, queryOf, type Order, type QueueFilters } from './filters';
import { uniqueById } from './unique';

/** The limits of the API: the most there is of one page, and of one request to move. */
const PAGE_SIZE = 100;
const MAX_MOVED = 100;
/** How often a move is tried while votes arrive. */
const MAX_TRIES = 3;
/** Reports that others file and move are shown together, within this time, and no more often than that. */
const REFRESH_MS = 2_000;
const REFRESH_APART_MS = 10_000;
/** After an act of one's own the counts follow within this time. */
const COUNT_MS = 300;

export function createQueue() {
  const tasks = signal<Task[]>([]);
  const next = signal<string | undefined>();
  const counts = signal<QueueCounts | undefined>();
  const state = signal<'loading' | 'ready' | 'failed'>('loading');
  const error = signal<unknown>();
  /** The ids of the selected tasks, all of which are shown. */
  const selected = signal<ReadonlySet<string>>(new Set());
  let filters: QueueFilters;
  let order: Order = 'oldest';
  /** The query of the list, as text: whether another one is requested. */
  let shown = '';
  /** Counts readings: only the latest is shown, and the last that has ended. */
  let readings = 0;
  let ended = 0;

  /** Shows tasks; those that have left the filters are gone, and no longer selected. */
  const show = (fresh: Task[]) => {
    const kept = fresh.filter((task) => fits(filters, task));
    const ids = new Set(kept.map(({ id }) => id));
    batch(() => {
      tasks.value = kept;
      const left = [...selected.value].filter((id) => ids.has(id));
      if (left.length < selected.value.size) selected.value = new Set(left);
    });
  };

  const fetchPage = (cursor: string | undefined) => {
    const query = { ...queryOf(filters), order, limit: PAGE_SIZE, ...(cursor && { cursor }) };
    return must(reportService.GET('/reports/queue', { params: { query } }));
  };
  const fetchCounts = () => must(reportService.GET('/reports/queue/counts', { params: { query: queryOf(filters) } }));

  const fail = (failure: unknown) =>
    batch(() => {
      state.value = 'failed';
      error.value = failure;
    });

  /** Reads pages until there are as many tasks as wanted, or another reading has begun. */
  const readPages = async (wanted: number, reading: number) => {
    let page = await fetchPage(undefined);
    const found = [...page.reports];
    while (page.next_cursor && found.length < wanted && reading === readings) {
      page = await fetchPage(page.next_cursor);
      found.push(...page.reports);
    }
    return { found, cursor: page.next_cursor };
  };

  /** Reads all that is shown again: tasks on later pages come and go as well. */
  const refresh = async () => {
    const reading = ++readings;
    try {
      const [{ found, cursor }, fresh] = await Promise.all([readPages(tasks.value.length, reading), fetchCounts()]);
      if (reading !== readings) return;
      batch(() => {
        show(uniqueById(found));
        next.value = cursor;
        counts.value = fresh;
        state.value = 'ready';
        error.value = undefined;
      });
    } catch (failure) {
      if (reading === readings) fail(failure);
    } finally {
      ended = Math.max(ended, reading);
    }
  };
  /** The end of an act of one's own. A reading at this moment may be from before it. */
  const afterAct = () => (ended < readings ? void refresh() : countSoon());
  const refreshSoon = debounce(() => void refresh(), REFRESH_MS, REFRESH_APART_MS);
  const countSoon = debounce(() => {
    const reading = readings;
    // The next reading counts as well, and says what went wrong.
    fetchCounts().then(
      (fresh) => reading === readings && (counts.value = fresh),
      () => {},
    );
  }, COUNT_MS);

  const onEvents = (events: FeedEvent[]) => {
    const changed = tasks.value.map((task) => applyEvents(task, events));
    if (changed.some((task, i) => task !== tasks.value[i])) show(changed);
    if (events.some(({ type }) => type !== 'report.vote.received')) refreshSoon();
  };

  return {
    tasks,
    next,
    counts,
    state,
    error,
    selected,
    refresh,

    load(wanted: QueueFilters, by: Order) {
      const asked = JSON.stringify([wanted, by]);
      filters = wanted;
      order = by;
      if (asked !== shown) {
        shown = asked;
        batch(() => {
          tasks.value = [];
          next.value = undefined;
          selected.value = new Set();
          state.value = 'loading';
        });
      }
      void refresh();
    },

    async more() {
      const reading = readings;
      try {
        const page = await fetchPage(next.value);
        if (reading !== readings) return; // another reading has begun, with its own cursor
        show(uniqueById([...tasks.value, ...page.reports]));
        next.value = page.next_cursor;
      } catch (failure) {
        if (reading === readings) fail(failure);
      }
    },

    /** Shows a task as it is by now. An event may have been faster than the answer. */
    put(task: Task) {
      const before = tasks.value.find(({ id }) => id === task.id);
      if (!before || task.version < before.version || JSON.stringify(task) === JSON.stringify(before)) return;
      show(tasks.value.map((each) => (each === before ? task : each)));
      afterAct();
    },

    /** Takes away a task that is another department's now. */
    drop(id: string) {
      show(tasks.value.filter((each) => each.id !== id));
      afterAct();
    },

    select(ids: Iterable<string>) {
      selected.value = new Set(ids);
    },

    toggle(id: string) {
      const ids = new Set(selected.value);
      if (!ids.delete(id)) ids.add(id);
      selected.value = ids;
    },

    /** Shows what came of a move of many. Those that were refused stay selected. */
    moved(results: MoveResult[], to: Status) {
      const done = new Map(results.flatMap(({ id, moved, version }) => (moved ? [[id, version] as const] : [])));
      show(
        tasks.value.map((task) =>
          done.has(task.id) ? { ...task, status: to, transitions: [], version: done.get(task.id) ?? task.version } : task,
        ),
      );
      selected.value = new Set([...selected.value].filter((id) => !done.has(id)));
      void refresh();
    },

    /** Keeps the list current until the returned function is called. */
    watch: () => watchFeed({ onEvents, onGap: refreshSoon }),
  };
}

/** The request that had no answer yet. The same one again has one effect, by its key. */
let unanswered: { body: string; key: string } | undefined;

async function requestMove(body: BulkMove): Promise<MoveResult[]> {
  const text = JSON.stringify(body);
  if (unanswered?.body !== text) unanswered = { body: text, key: randomKey() };
  const params = { header: { 'Idempotency-Key': unanswered.key } };
  try {
    const { results } = await must(reportService.POST('/reports/moves', { params, body }));
    unanswered = undefined;
    return results;
  } catch (failure) {
    if (!(failure instanceof Failure) || !failure.uncertain) unanswered = undefined;
    throw failure;
  }
}

/**
 * Moves reports, each by itself, and returns what came of each, in their order.
 * Votes change the version of a report as well: what has still the status that
 * was seen is tried again.
 */
export async function moveAll(seen: Task[], status: Status, note: string): Promise<MoveResult[]> {
  const results = new Map<string, MoveResult>();
  for (let first = 0; first < seen.length; first += MAX_MOVED) {
    let left: { id: string; version: number }[] = seen.slice(first, first + MAX_MOVED);
    for (let tries = 1; left.length > 0; tries++) {
      const reports = left.map(({ id, version }) => ({ id, version }));
      for (const result of await requestMove({ reports, status, ...(note && { note }) })) results.set(result.id, result);
      const stale = seen.filter(({ id }) => results.get(id)?.problem === 'stale-version' && left.some((each) => each.id === id));
      if (stale.length === 0 || tries === MAX_TRIES) break;
      const now = await Promise.all(stale.map(({ id }) => must(reportService.GET('/reports/{id}', { params: { path: { id } } }))));
      left = now.filter((report, i) => report.status === stale[i]?.status);
    }
  }
  return seen.flatMap(({ id }) => results.get(id) ?? []);
}
