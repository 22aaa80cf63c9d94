import { useEffect, useState } from 'preact/hooks';

import type { Task } from '../../api/client';
import { t, tn } from '../../lang/queue';
import { createQueue, ORDERS } from '../../state/queue';
import { Fault } from '../../ui/problem';
import { href, route, setQuery } from '../../ui/router';
import { useShortcuts } from '../../ui/shortcuts';
import { AssignDialog } from './assign';
import { Detail } from './detail';
import { ExportButton } from './export';
import { FilterBar, filtersOf } from './filters';
import { KeysDialog } from './keys';
import { MoveDialog } from './move';
import { StatusTabs } from './status-tabs';
import { Table } from './table';
import { useDialog } from './use-dialog';
import { useRow } from './use-row';

/** Kept between visits of the screen, which then shows it at once. */
const queue = createQueue();

type Dialog = { name: 'move' | 'assign'; tasks: Task[] } | { name: 'keys' };

/** The queue as a table, with the current report beside it. */
export function Workbench() {
  const { query } = route.value;
  const filters = filtersOf(query);
  const order = ORDERS.find((each) => each === query.get('order')) ?? 'oldest';
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
  /** The result of the last act, for screen readers. */
  const [said, setSaid] = useState('');

  const selected = queue.selected.value;
  const chosen = tasks.filter(({ id }) => selected.has(id));
  // These act on the selected rows, or on the row at hand if none is selected.
  const assign = (those: Task[]) => those.length > 0 && openDialog({ name: 'assign', tasks: those });
  const move = () => (chosen.length > 0 ? openDialog({ name: 'move', tasks: chosen }) : open(current ?? atHand?.id, 'status'));

  useShortcuts((key, event) => {
    const keys: Record<string, (() => void) | undefined> = {
      j: () => goTo(after),
      k: () => goTo(before),
      x: () => row && queue.toggle(row.id),
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

  return (
    <>
      <StatusTabs chosen={filters.status[0]} counts={queue.counts.value?.statuses} />
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
              orderAddress={(chosen) => href('queue', { ...Object.fromEntries(query), order: chosen })}
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
              task={row?.id === shown ? row : undefined}
              onTask={queue.put}
              onMoved={(title) => {
                setSaid(t('work.moved', { title }));
                advance();
              }}
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
