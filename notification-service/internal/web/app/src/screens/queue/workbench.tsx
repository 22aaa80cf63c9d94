import { t, tn } from '../../lang/queue';
import { narrowing, ORDERS, type QueueFilters } from '../../state/filters';
import { Options } from '../../ui/field';
import { Fault } from '../../ui/problem';
import { href, route, setQuery } from '../../ui/router';
import { AssignDialog } from './assign';
import { ActBar } from './act-bar';
import { AskDialog } from './ask';
import { CorrectDialog } from './correct';
import { Detail } from './detail';
import { ExportButton } from './export';
import { FilterBar } from './filters';
import { ForwardDialog } from './forward';
import { IntakeDialog } from './intake';
import { KeysDialog } from './keys';
import { MoveDialog } from './move';
import { QueueMap } from './queue-map';
import { StatusTabs } from './status-tabs';
import { columnsWithout, Table } from './table';
import { useDesk } from './use-desk';
import { viewOf, ViewsDialog } from './views';

type Props = { desk: ReturnType<typeof useDesk> };

/** The queue as a table, with the current report beside it. */
export function Workbench() {
  const desk = useDesk();
  const { queue, filters, order, filtered, shown, row, before, after, pane, open, goTo } = desk;
  const { query } = route.value;
  const tasks = queue.tasks.value;
  const total = queue.counts.value?.total ?? tasks.length;
  return (
    <>
      <TopBar desk={desk} />
      <FilterBar filters={filters} counts={queue.counts.value}>
        <label class="pick">
          <span class="hidden">{t('work.order')}</span>
          <select value={order} onChange={(event) => setQuery({ order: event.currentTarget.value })}>
            <Options of={ORDERS.map((each) => [each, t(`work.order.${each}`)])} />
          </select>
        </label>
      </FilterBar>
      <Fault error={queue.error.value} retry={() => void queue.refresh()} />
      <div class="desk" aria-busy={queue.state.value === 'loading'}>
        <section class="desk-list" aria-label={t('queue')}>
          {tasks.length === 0 && queue.state.value === 'loading' && <Skeleton />}
          {tasks.length === 0 && queue.state.value === 'ready' && <Empty filters={filters} />}
          {tasks.length > 0 && (
            <Table
              tasks={tasks}
              total={total}
              order={order}
              current={desk.current}
              selected={queue.selected.value}
              address={(part) => href('queue', { ...Object.fromEntries(query), ...part })}
              onCurrent={desk.setCurrent}
              onSelect={queue.select}
              onToggle={queue.toggle}
              onOpen={open}
              onPick={desk.wide ? desk.setCurrent : open}
              oneStatus={filters.status.length === 1}
              without={columnsWithout(query)}
              table={desk.table}
            />
          )}
          {queue.next.value && (
            <button type="button" class="wide" onClick={() => void queue.more()}>
              {t('more')}
            </button>
          )}
        </section>
        {query.has('map') && <QueueMap tasks={tasks} filters={filters} filtered={filtered} counts={queue.counts.value} onOpen={open} />}
        <section class="desk-detail" aria-label={t('report')} ref={pane}>
          {shown ? (
            <Detail
              key={shown}
              id={shown}
              task={row?.id === shown ? row : undefined}
              onTask={queue.put}
              onMoved={(moved) => {
                desk.setDone(moved);
                desk.advance();
              }}
              onAssign={(task) => desk.openDialog({ name: 'assign', tasks: [task] })}
              onCorrect={(task) => desk.openDialog({ name: 'correct', task })}
              onForward={(task) => desk.openDialog({ name: 'forward', task })}
              onAsk={(task) => desk.openDialog({ name: 'ask', task })}
              onClose={desk.close}
              {...(after < tasks.length && { onNext: () => goTo(after) })}
              {...(before >= 0 && { onPrevious: () => goTo(before) })}
            />
          ) : (
            <p class="empty">{t('work.choose')}</p>
          )}
        </section>
        <ActBar desk={desk} />
      </div>
      <Dialogs desk={desk} />
    </>
  );
}

/** The statuses, how many reports are found, and the commands that need none at hand. */
function TopBar({ desk: { queue, filters, run } }: Props) {
  const mapped = route.value.query.has('map');
  const { counts, state, tasks } = queue;
  return (
    <div class="bar spread">
      <StatusTabs chosen={filters.status[0]} counts={counts.value?.statuses} reporter={filters.reporter} />
      <span class="bar found">
        <p class="quiet" role="status">
          {state.value === 'loading' ? t('loading') : tn('work.found', counts.value?.total ?? tasks.value.length)}
        </p>
        <button type="button" aria-haspopup="dialog" onClick={() => run('intake')}>
          {t('intake')}
        </button>
        <button type="button" aria-pressed={mapped} onClick={() => setQuery({ map: mapped ? '' : '1' })}>
          {t('view.map')}
        </button>
        <button type="button" aria-haspopup="dialog" onClick={() => run('views')}>
          {t('work.views')}
        </button>
        <ExportButton filters={filters} />
        <button type="button" class="link keys" aria-haspopup="dialog" onClick={() => run('help')}>
          {t('work.keys')}
        </button>
      </span>
    </div>
  );
}

function Dialogs({ desk: { dialog, endDialog, queue, show, showMoves, open } }: Props) {
  switch (dialog?.name) {
    case 'move':
      return <MoveDialog tasks={dialog.tasks} onMoved={(results, to) => showMoves(dialog.tasks, results, to)} onClose={endDialog} />;
    case 'assign':
      return <AssignDialog tasks={dialog.tasks} onTask={queue.put} onClose={endDialog} />;
    case 'correct':
      return <CorrectDialog task={dialog.task} onCorrected={(now) => show(dialog.task, now)} onClose={endDialog} />;
    case 'forward':
      return <ForwardDialog task={dialog.task} onForwarded={(now) => show(dialog.task, now)} onClose={endDialog} />;
    case 'ask':
      return <AskDialog task={dialog.task} onTask={queue.put} onClose={endDialog} />;
    case 'views':
      return <ViewsDialog filters={viewOf(route.value.query)} onClose={endDialog} />;
    case 'intake':
      return <IntakeDialog onFiled={(id) => open(id)} onClose={endDialog} />;
    case 'keys':
      return <KeysDialog onClose={endDialog} />;
    case undefined:
      return null;
  }
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
      {narrowing(filters).length === 0 && filters.status.length > 0 && (
        <p>
          <button type="button" onClick={() => setQuery({ status: 'all' })}>
            {t('work.none.all')}
          </button>
        </p>
      )}
    </div>
  );
}
