import { useEffect, useRef, useState } from 'preact/hooks';

import type { Status, Task } from '../../api/client';
import { number, t, tn } from '../../lang/queue';
import { Suspects } from '../../moderation/suspects';
import { HeldPhotos } from '../../photos/held';
import { config } from '../../state/config';
import { loadDesk } from '../../state/desk';
import { createQueue, ORDERS, type QueueFilters } from '../../state/queue';
import { STATUSES } from '../../ui/badge';
import { Fault } from '../../ui/problem';
import { go, href, route, setQuery } from '../../ui/router';
import { useMedia } from '../../ui/media';
import { useShortcuts } from '../../ui/shortcuts';
import { AssignDialog } from './assign';
import { BulkMoves } from './bulk-moves';
import { Detail } from './detail';
import { ExportButton } from './export';
import { FilterBar } from './filters';
import { KeysDialog } from './keys';
import { MoveDialog } from './move';
import { Numbers } from './numbers';
import { LEVELS } from './overdue';
import { focusTask, Table } from './table';
import { TemplatesScreen } from './templates';

/** Table and report stand beside each other from this width on; below, one follows the other. */
const WIDE = '(width >= 64rem)';
/** The address follows the current row after this time: browsers refuse to be told of each key of a pressed one. */
const ADDRESS_MS = 300;

const sections = [
  { path: '', name: 'queue' },
  { path: 'numbers', name: 'numbers' },
  { path: 'templates', name: 'templates' },
  { path: 'moves', name: 'moves' },
  { path: 'photos', name: 'held.title' },
  { path: 'abuse', name: 'abuse.title' },
] as const;

/** Kept between visits of the screen, which then shows it at once. */
const queue = createQueue();

/** What the officials work with, a tab for each part. */
export function QueueScreen({ path: [, path = ''] }: { path: string[] }) {
  const [error, setError] = useState<unknown>();
  const section = sections.find((each) => each.path === path) ?? sections[0];
  const read = () => {
    setError(undefined);
    loadDesk().catch(setError);
  };
  useEffect(read, []);
  return (
    <div class="workbench" data-open={section.name === 'queue' && route.value.query.has('report')}>
      <div class="title-row">
        <h1 tabIndex={-1}>{t(section.name)}</h1>
        <nav class="tabs" aria-label={t('work')}>
          {sections
            .filter(({ path }) => path !== 'photos' || config.photos)
            .map(({ path, name }) => (
              <a key={path} href={href(path ? `queue/${path}` : 'queue')} aria-current={path === section.path ? 'page' : undefined}>
                {t(name)}
              </a>
            ))}
        </nav>
      </div>
      <Fault error={error} retry={read} />
      {section.name === 'queue' && <Workbench />}
      {section.name === 'numbers' && <Numbers filters={{ ...filtersOf(route.value.query), status: [] }} />}
      {section.name === 'templates' && <TemplatesScreen />}
      {section.name === 'moves' && <BulkMoves />}
      {section.name === 'held.title' && <HeldPhotos />}
      {section.name === 'abuse.title' && <Suspects />}
    </div>
  );
}

/** The filters that an address has; without a status it is what nobody has begun. */
function filtersOf(query: URLSearchParams): QueueFilters {
  const status = query.get('status') ?? 'pending';
  const numbers = (name: string) => (query.get(name)?.split(',') ?? []).map(Number).filter((id) => id > 0);
  return {
    status: STATUSES.filter((each) => each === status),
    category: numbers('category'),
    department: numbers('department'),
    assignee: query.get('assignee') ?? '',
    q: query.get('q') ?? '',
    bbox: query.get('bbox') ?? '',
    from: query.get('from') ?? '',
    to: query.get('to') ?? '',
    overdue: LEVELS.find((level) => level === Number(query.get('overdue'))) ?? 0,
    hidden: query.has('hidden'),
  };
}

type Dialog = { name: 'move' | 'assign'; tasks: Task[] } | { name: 'keys' };
/** Where the focus goes once what is wanted has been drawn. */
type Wanted = 'detail' | 'status' | 'note';

function Workbench() {
  const { query } = route.value;
  const filters = filtersOf(query);
  const order = ORDERS.find((each) => each === query.get('order')) ?? 'oldest';
  const wide = useMedia(WIDE);
  const opened = query.get('report') ?? undefined;
  const [current, setCurrent] = useState(opened);
  /** The current row by the time that an act ends. */
  const latest = useRef(current);
  latest.current = current;
  const [dialog, setDialog] = useState<Dialog>();
  /** Whether a dialog was opened from where the focus was. */
  const fromFocus = useRef(false);
  /** What came of the last act, for who does not see it. */
  const [said, setSaid] = useState('');
  const wanted = useRef<Wanted | undefined>(undefined);
  const table = useRef<HTMLDivElement>(null);
  const pane = useRef<HTMLDivElement>(null);

  useEffect(() => queue.watch(), []);
  const first = useRef(true);
  useEffect(() => {
    queue.load(filters, order);
    if (!first.current) {
      // Other filters begin at the top, unless the address names a report of theirs.
      const named = opened !== current ? opened : undefined;
      setCurrent(named);
      if (!named && opened) setQuery({ report: '' });
    }
    first.current = false;
  }, [JSON.stringify([filters, order])]);
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

  const tasks = queue.tasks.value;
  const at = tasks.findIndex(({ id }) => id === current);
  // Where the current row is, or was when it was last in the list.
  const place = useRef(0);
  if (at >= 0) place.current = at;
  const [before, after] = at >= 0 ? [at - 1, at + 1] : [place.current - 1, place.current];
  const selected = queue.selected.value;
  const chosen = tasks.filter(({ id }) => selected.has(id));
  const shown = wide || opened ? current : undefined;

  const had = useRef(0);
  useEffect(() => {
    // The last row is gone, and the focus with it.
    if (tasks.length === 0 && had.current > 0 && document.activeElement === document.body) focusHeading();
    had.current = tasks.length;
  }, [tasks.length]);
  useEffect(() => {
    const target = wanted.current && pane.current?.querySelector<HTMLElement>(FOCUS[wanted.current]);
    if (!target) return;
    wanted.current = undefined;
    target.focus();
  });

  /** Shows a report in the pane, with the focus there. */
  const open = (id: string | undefined, focus: Wanted = 'detail') => {
    if (!id) return;
    const drawn = id === shown ? pane.current?.querySelector<HTMLElement>(FOCUS[focus]) : undefined;
    if (drawn) return drawn.focus();
    wanted.current = focus;
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
  const close = () => {
    if (!wide && opened) setQuery({ report: '' });
    else focusTask(table.current, current ?? tasks[0]?.id);
  };
  /** The report was moved: on to the next, which has its place if it has left the list. */
  const advance = (title: string) => {
    setSaid(t('work.moved', { title }));
    // The answer took its time: the reader has gone on meanwhile.
    if (latest.current !== current) return;
    const list = queue.tasks.value;
    const stays = list.some(({ id }) => id === current);
    const next = list[Math.min(place.current + (stays ? 1 : 0), list.length - 1)];
    if (!next) {
      if (!wide) setQuery({ report: '' });
      focusHeading();
    } else if (wide) focusTask(table.current, next.id);
    else open(next.id);
  };
  const openDialog = (wanted: Dialog) => {
    fromFocus.current = document.activeElement !== document.body;
    setDialog(wanted);
  };
  // What is selected, or else the row at hand.
  const atHand = tasks[at] ?? (current === undefined ? tasks[0] : undefined);
  const assign = (those: Task[]) => those.length > 0 && openDialog({ name: 'assign', tasks: those });
  const move = () => (chosen.length > 0 ? openDialog({ name: 'move', tasks: chosen }) : open(current ?? atHand?.id, 'status'));

  useShortcuts((key, event) => {
    const keys: Record<string, (() => void) | undefined> = {
      j: () => goTo(after),
      k: () => goTo(before),
      x: () => at >= 0 && queue.toggle(tasks[at]!.id),
      o: () => open(current ?? atHand?.id),
      m: move,
      a: () => assign(chosen.length > 0 ? chosen : atHand ? [atHand] : []),
      n: () => open(current ?? atHand?.id, 'note'),
      '/': () => document.querySelector<HTMLElement>('.workbench [type=search]')?.focus(),
      '?': () => openDialog({ name: 'keys' }),
      Escape: () => (selected.size > 0 && table.current?.contains(document.activeElement) ? queue.select([]) : close()),
    };
    if (!Object.hasOwn(keys, key)) return;
    event.preventDefault();
    keys[key]?.();
  });

  const endDialog = () => {
    setDialog(undefined);
    // What had the focus may be gone.
    setTimeout(() => {
      if (document.activeElement !== document.body || !fromFocus.current) return;
      const list = queue.tasks.value;
      const next = list[Math.min(place.current, list.length - 1)];
      if (!focusTask(table.current, next?.id)) focusHeading();
    });
  };
  return (
    <>
      <StatusTabs chosen={filters.status[0]} />
      <FilterBar filters={filters} counts={queue.counts.value}>
        <label class="field">
          <span>{t('work.order')}</span>
          <select value={order} onChange={(event) => setQuery({ order: event.currentTarget.value })}>
            {ORDERS.map((each) => (
              <option key={each} value={each}>
                {t(`work.order.${each}`)}
              </option>
            ))}
          </select>
        </label>
        <ExportButton filters={filters} />
      </FilterBar>
      <Fault error={queue.error.value} retry={() => void queue.refresh()} />
      <div class="bar spread found">
        <p class="quiet" role="status">
          {queue.state.value === 'loading' ? t('loading') : tn('work.found', queue.counts.value?.total ?? tasks.length)}
          {selected.size > 0 && ` · ${tn('work.chosen', selected.size)}`}
        </p>
        <span class="bar">
          {selected.size > 0 && (
            <>
              <button type="button" class="primary" aria-haspopup="dialog" onClick={move}>
                {t('work.move')}
              </button>
              <button type="button" aria-haspopup="dialog" onClick={() => assign(chosen)}>
                {t('work.assign')}
              </button>
              <button type="button" class="link" onClick={() => queue.select([])}>
                {t('work.clear')}
              </button>
            </>
          )}
          <button type="button" class="link keys" aria-haspopup="dialog" onClick={() => openDialog({ name: 'keys' })}>
            {t('work.keys')}
          </button>
        </span>
      </div>
      <div class="desk" aria-busy={queue.state.value === 'loading'}>
        <section class="desk-list" aria-label={t('queue')}>
          {tasks.length === 0 && queue.state.value === 'ready' && <p class="empty">{t('work.none')}</p>}
          {tasks.length > 0 && (
            <Table
              tasks={tasks}
              total={queue.counts.value?.total ?? tasks.length}
              order={order}
              current={current}
              selected={selected}
              address={(id) => href('queue', { ...Object.fromEntries(query), report: id })}
              orderAddress={(wanted) => href('queue', { ...Object.fromEntries(query), order: wanted })}
              onCurrent={setCurrent}
              onSelect={queue.select}
              onToggle={queue.toggle}
              onOpen={open}
              onPick={(id) => (wide ? setCurrent(id) : open(id))}
              table={table}
            />
          )}
          {queue.next.value && (
            <button type="button" class="wide" onClick={() => void queue.more()}>
              {t('more')}
            </button>
          )}
        </section>
        <section class="desk-detail" aria-label={t('report')} ref={pane}>
          <p class="quiet" role="status">
            {said}
          </p>
          {shown ? (
            <Detail
              key={shown}
              id={shown}
              task={tasks[at]?.id === shown ? tasks[at] : undefined}
              onTask={queue.put}
              onMoved={advance}
              onAssign={(task) => assign([task])}
              onClose={close}
              {...(after < tasks.length && { onNext: () => goTo(after) })}
              {...(before >= 0 && { onPrevious: () => goTo(before) })}
            />
          ) : (
            <p class="empty">{t('work.choose')}</p>
          )}
        </section>
      </div>
      {dialog?.name === 'move' && <MoveDialog tasks={dialog.tasks} onMoved={queue.moved} onClose={endDialog} />}
      {dialog?.name === 'assign' && <AssignDialog tasks={dialog.tasks} onTask={queue.put} onClose={endDialog} />}
      {dialog?.name === 'keys' && <KeysDialog onClose={endDialog} />}
    </>
  );
}

function focusHeading(): void {
  document.querySelector<HTMLElement>('main h1')?.focus();
}

/** What the focus goes to in the pane, for each that may be wanted. */
const FOCUS: Record<Wanted, string> = { detail: 'h2', status: 'input[data-first]', note: 'textarea[data-internal]' };

/** The statuses, with how many reports each would show. */
function StatusTabs({ chosen }: { chosen: Status | undefined }) {
  const counts = queue.counts.value?.statuses;
  const countOf = (status: Status | undefined) =>
    counts?.reduce((sum, each) => sum + (status === undefined || each.status === status ? each.count : 0), 0);
  return (
    <div class="views always" role="group" aria-label={t('status')}>
      {[...STATUSES, undefined].map((status) => {
        const count = countOf(status);
        return (
          <button
            key={status ?? 'all'}
            type="button"
            aria-pressed={status === chosen}
            onClick={() => setQuery({ status: status ?? 'all' })}
          >
            {status ? t(`status.${status}`) : t('work.all')}
            {count !== undefined && <span class="quiet"> {number(count)}</span>}
          </button>
        );
      })}
    </div>
  );
}
