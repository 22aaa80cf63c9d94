import { useEffect, useRef, useState } from 'preact/hooks';

import { must, reportService, type MoveResult, type Status, type Task } from '../../api/client';
import { t, tn } from '../../lang/queue';
import { templates } from '../../state/desk';
import { movedTo, type Moved } from '../../state/moved';
import { chooseTemplate, finishedReport } from '../../state/notes';
import { createQueue, ORDERS, type QueueFilters } from '../../state/queue';
import { Fault } from '../../ui/problem';
import { href, route, setQuery } from '../../ui/router';
import { useShortcuts } from '../../ui/shortcuts';
import { AssignDialog } from './assign';
import { ActBar } from './act-bar';
import { AskDialog } from './ask';
import { CorrectDialog } from './correct';
import { Detail } from './detail';
import { ExportButton } from './export';
import { FilterBar, filtersOf, isNarrowed, NO_FILTERS } from './filters';
import { IntakeDialog } from './intake';
import { KeysDialog } from './keys';
import { MoveDialog } from './move';
import { QueueMap } from './queue-map';
import { StatusTabs } from './status-tabs';
import { columnsWithout, Table } from './table';
import { useDialog } from './use-dialog';
import { useRow } from './use-row';
import { viewOf, ViewsDialog } from './views';

/** Kept between visits of the screen, which then shows it at once. */
const queue = createQueue();

type Dialog = { name: 'move' | 'assign'; tasks: Task[] } | { name: 'correct' | 'ask'; task: Task } | { name: 'keys' | 'views' | 'intake' };

/** The queue as a table, with the current report beside it. */
export function Workbench() {
  const { query } = route.value;
  const filters = filtersOf(query);
  const order = ORDERS.find((each) => each === query.get('order')) ?? 'oldest';
  const mapped = query.has('map');
  const filtered = JSON.stringify([filters, order]);
  useEffect(() => queue.watch(), []);
  useEffect(() => queue.load(filters, order), [filtered]);

  const tasks = queue.tasks.value;
  const { table, pane, current, setCurrent, shown, wide, row, atHand, before, after, open, goTo, close, advance, focusPlace } = useRow(
    () => queue.tasks.value,
    query,
    filtered,
  );
  const { dialog, openDialog, endDialog } = useDialog<Dialog>(focusPlace);
  const [done, setDone] = useState<Moved>();

  const selected = queue.selected.value;
  const chosen = tasks.filter(({ id }) => selected.has(id));
  // These act on the selected rows, or on the row at hand if none is selected.
  const assign = (those: Task[]) => those.length > 0 && openDialog({ name: 'assign', tasks: those });
  const correct = (task: Task | undefined) => task && !task.hidden_reason && openDialog({ name: 'correct', task });
  const ask = (task: Task | undefined) => {
    const isOpen = task?.status === 'pending' || task?.status === 'in_progress';
    if (isOpen && !task.question && !task.hidden_reason) openDialog({ name: 'ask', task });
  };
  /** Asks for a photo of the finished work, in the form of the report at hand. */
  const finish = () => {
    const id = current ?? atHand?.id;
    if (!id) return;
    finishedReport.value = id;
    open(id, 'status');
  };
  const move = () => (chosen.length > 0 ? openDialog({ name: 'move', tasks: chosen }) : open(current ?? atHand?.id, 'status'));

  /** Fills the form of the report at hand in. */
  const fill = (at: number) => {
    const id = current ?? atHand?.id;
    const template = templates.value?.[at];
    if (!id || !template) return;
    chooseTemplate(id, template);
    open(id, 'status');
  };
  const undo = useRef<() => void>(undefined);
  /** Shows what came of a move of many, and looks whether there is a way back. */
  const movedMany = (before: Task[], results: MoveResult[], to: Status) => {
    queue.moved(results, to);
    const versions = new Map(results.flatMap(({ id, moved, version }) => (moved && version ? [[id, version] as const] : [])));
    const tasks = before.filter(({ id }) => versions.has(id));
    const [one] = tasks;
    if (!one) return;
    setDone({ to, tasks });
    must(reportService.GET('/reports/{id}', { params: { path: { id: one.id } } })).then(
      ({ status, transitions }) => {
        if (status === to) setDone(movedTo(to, tasks, ({ id }) => versions.get(id) ?? 0, transitions));
      },
      () => {}, // no way back is offered
    );
  };

  useShortcuts((key, event) => {
    const digit = /^[1-9]$/.test(key) ? Number(key) : 0;
    if (digit > 0 && digit <= (templates.value?.length ?? 0)) {
      event.preventDefault();
      fill(digit - 1);
      return;
    }
    const keys: Record<string, (() => void) | undefined> = {
      j: () => goTo(after),
      k: () => goTo(before),
      x: () => row && queue.toggle(row.id),
      o: () => open(current ?? atHand?.id),
      m: move,
      a: () => assign(chosen.length > 0 ? chosen : atHand ? [atHand] : []),
      e: () => correct(row ?? atHand),
      q: () => ask(row ?? atHand),
      p: finish,
      n: () => open(current ?? atHand?.id, 'note'),
      u: () => undo.current?.(),
      f: () => openDialog({ name: 'intake' }),
      v: () => openDialog({ name: 'views' }),
      '/': () => document.querySelector<HTMLElement>('.workbench [type=search]')?.focus(),
      '?': () => openDialog({ name: 'keys' }),
      Escape: () => (selected.size > 0 && table.current?.contains(document.activeElement) ? queue.select([]) : close()),
    };
    if (!Object.hasOwn(keys, key)) return;
    event.preventDefault();
    keys[key]?.();
  });

  return (
    <>
      <div class="bar spread">
        <StatusTabs chosen={filters.status[0]} counts={queue.counts.value?.statuses} reporter={filters.reporter} />
        <span class="bar found">
          <p class="quiet" role="status">
            {queue.state.value === 'loading' ? t('loading') : tn('work.found', queue.counts.value?.total ?? tasks.length)}
          </p>
          <button type="button" aria-haspopup="dialog" onClick={() => openDialog({ name: 'intake' })}>
            {t('intake')}
          </button>
          <button type="button" aria-pressed={mapped} onClick={() => setQuery({ map: mapped ? '' : '1' })}>
            {t('view.map')}
          </button>
          <button type="button" aria-haspopup="dialog" onClick={() => openDialog({ name: 'views' })}>
            {t('work.views')}
          </button>
          <ExportButton filters={filters} />
          <button type="button" class="link keys" aria-haspopup="dialog" onClick={() => openDialog({ name: 'keys' })}>
            {t('work.keys')}
          </button>
        </span>
      </div>
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
      </FilterBar>
      <Fault error={queue.error.value} retry={() => void queue.refresh()} />
      <div class="desk" aria-busy={queue.state.value === 'loading'}>
        <section class="desk-list" aria-label={t('queue')}>
          {mapped && <QueueMap tasks={tasks} filtered={filtered} onOpen={open} />}
          {tasks.length === 0 && queue.state.value === 'loading' && <Skeleton />}
          {tasks.length === 0 && queue.state.value === 'ready' && <Empty filters={filters} />}
          {tasks.length > 0 && (
            <Table
              tasks={tasks}
              total={queue.counts.value?.total ?? tasks.length}
              order={order}
              current={current}
              selected={selected}
              address={(id) => href('queue', { ...Object.fromEntries(query), report: id })}
              orderAddress={(chosen) => href('queue', { ...Object.fromEntries(query), order: chosen })}
              onCurrent={setCurrent}
              onSelect={queue.select}
              onToggle={queue.toggle}
              onOpen={open}
              onPick={(id) => (wide ? setCurrent(id) : open(id))}
              oneStatus={filters.status.length === 1}
              without={columnsWithout(query)}
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
          {shown ? (
            <Detail
              key={shown}
              id={shown}
              task={row?.id === shown ? row : undefined}
              onTask={queue.put}
              onMoved={(moved) => {
                setDone(moved);
                advance();
              }}
              onAssign={(task) => assign([task])}
              onCorrect={correct}
              onAsk={ask}
              onClose={close}
              {...(after < tasks.length && { onNext: () => goTo(after) })}
              {...(before >= 0 && { onPrevious: () => goTo(before) })}
            />
          ) : (
            <p class="empty">{t('work.choose')}</p>
          )}
        </section>
        <ActBar
          chosen={chosen}
          done={done}
          undoing={undo}
          onMove={move}
          onAssign={() => assign(chosen)}
          onClear={() => queue.select([])}
          onUndone={() => void queue.refresh()}
          onClose={() => setDone(undefined)}
        />
      </div>
      {dialog?.name === 'move' && (
        <MoveDialog tasks={dialog.tasks} onMoved={(results, to) => movedMany(dialog.tasks, results, to)} onClose={endDialog} />
      )}
      {dialog?.name === 'assign' && <AssignDialog tasks={dialog.tasks} onTask={queue.put} onClose={endDialog} />}
      {dialog?.name === 'correct' && <CorrectDialog task={dialog.task} onTask={queue.put} onClose={endDialog} />}
      {dialog?.name === 'ask' && <AskDialog task={dialog.task} onTask={queue.put} onClose={endDialog} />}
      {dialog?.name === 'views' && <ViewsDialog filters={viewOf(query)} onClose={endDialog} />}
      {dialog?.name === 'intake' && <IntakeDialog onFiled={(id) => open(id)} onClose={endDialog} />}
      {dialog?.name === 'keys' && <KeysDialog onClose={endDialog} />}
    </>
  );
}

const SKELETON_ROWS = 12;

/** Where the rows will be, as long as nothing is known of them. */
function Skeleton() {
  return (
    <div class="tasks skeleton" aria-hidden="true">
      {Array.from({ length: SKELETON_ROWS }, (_, i) => (
        <div key={i} class="task">
          <span />
        </div>
      ))}
    </div>
  );
}

/** That nothing is found, and what to do next. */
function Empty({ filters }: { filters: QueueFilters }) {
  return (
    <div class="empty stack">
      <p>{t('work.none')}</p>
      {isNarrowed(filters) ? (
        <p>
          <button type="button" onClick={() => setQuery(NO_FILTERS)}>
            {t('filters.clear')}
          </button>
        </p>
      ) : (
        filters.status.length > 0 && (
          <p>
            <button type="button" onClick={() => setQuery({ status: 'all' })}>
              {t('work.none.all')}
            </button>
          </p>
        )
      )}
    </div>
  );
}
