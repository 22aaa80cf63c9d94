import { useComputed } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import type { Task } from '../../api/client';
import { number, t, tn, type Word } from '../../lang/queue';
import { lights, lit } from '../../map/highlight';
import { FirstPhoto } from '../../photos/first-photo';
import { categoryName, categoryOf } from '../../state/categories';
import type { Order } from '../../state/filters';
import { Badge } from '../../ui/badge';
import { categoryIcon } from '../../ui/category';
import { Icon } from '../../ui/icons';
import { Time } from '../../ui/time';
import { Overdue } from './overdue';

/** The columns, from left to right. */
const COLUMNS = ['select', 'category', 'title', 'status', 'with', 'filed', 'score'] as const;
type Column = (typeof COLUMNS)[number];

/** The columns that a reader may leave out. */
export const OPTIONAL_COLUMNS = ['status', 'category', 'with', 'filed', 'score'] as const satisfies Column[];
type OptionalColumn = (typeof OPTIONAL_COLUMNS)[number];

/** The columns that an address leaves out. */
export function columnsWithout(query: URLSearchParams): OptionalColumn[] {
  const left = query.get('without')?.split('.') ?? [];
  return OPTIONAL_COLUMNS.filter((name) => left.includes(name));
}

/** How a column can be ordered, one way after the other. The list of orders beside the filters has more, and the keyboard. */
const COLUMN_ORDERS: Partial<Record<Column, [Order, ...Order[]]>> = { filed: ['oldest', 'newest'], score: ['score'] };
/** Which of them begin with what is least. */
const ASCENDING: readonly Order[] = ['oldest'];

/** How many rows a page key goes. */
const PAGE_ROWS = 10;

export interface TableProps {
  tasks: Task[];
  /** How many there are, also on pages that are not loaded. */
  total: number;
  order: Order;
  current: string | undefined;
  selected: ReadonlySet<string>;
  /** Of the same list, with another report or in another order. */
  address(part: { report: string } | { order: Order }): string;
  onCurrent(id: string): void;
  onSelect(ids: Iterable<string>): void;
  onToggle(id: string): void;
  /** By a key, or by what reads the page aloud: to be read at once. */
  onOpen(id: string): void;
  /** By a pointer. */
  onPick(id: string): void;
  /** Whether all rows have the same status, which then needs little room. */
  oneStatus: boolean;
  /** The columns that the reader leaves out. */
  without: readonly Column[];
  table: RefObject<HTMLDivElement | null>;
}

/** Puts the focus on a task's row, in the column that had it last, and reports whether there is one. */
export function focusTask(table: HTMLDivElement | null, id: string | undefined, column = table?.dataset.column ?? 'title'): boolean {
  const row = [...(table?.querySelectorAll<HTMLElement>('[data-task]') ?? [])].find((each) => each.dataset.task === id);
  row?.querySelector<HTMLElement>(`[data-column=${column}]`)?.focus();
  return row !== undefined;
}

/**
 * The tasks as a grid of WAI-ARIA: Tab leads to one cell of it and out again,
 * arrows lead through it. The cell that has the focus makes its row the current one.
 */
export function Table(props: TableProps) {
  const { tasks, total, order, current, selected, address, onCurrent, onSelect, onToggle, onOpen, onPick, oneStatus, without, table } =
    props;
  const columns = COLUMNS.filter((name) => !without.includes(name));
  const [lastColumn, setColumn] = useState<Column>('title');
  const column = without.includes(lastColumn) ? 'title' : lastColumn;
  // The row that Tab leads to: where there is none that is current, the first.
  const at = Math.max(
    0,
    tasks.findIndex(({ id }) => id === current),
  );
  useKeptFocus(table, tasks, at);

  const focus = (row: number, to = column) => focusTask(table.current, tasks[Math.min(Math.max(row, 0), tasks.length - 1)]?.id, to);
  const onFocusIn = ({ target }: FocusEvent) => {
    if (!(target instanceof HTMLElement)) return;
    const id = target.closest<HTMLElement>('[data-task]')?.dataset.task;
    const name = target.dataset.column as Column | undefined;
    if (name) setColumn(name);
    if (id) onCurrent(id);
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const id = tasks[at]?.id;
    if (!id || event.altKey || event.metaKey) return;
    const { key, ctrlKey, shiftKey } = event;
    const columnAt = columns.indexOf(column);
    const keys: Record<string, (() => void) | undefined> = {
      ArrowDown: () => focus(at + 1),
      ArrowUp: () => focus(at - 1),
      PageDown: () => focus(at + PAGE_ROWS),
      PageUp: () => focus(at - PAGE_ROWS),
      ArrowRight: () => focus(at, columns[Math.min(columnAt + 1, columns.length - 1)]),
      ArrowLeft: () => focus(at, columns[Math.max(columnAt - 1, 0)]),
      Home: () => focus(ctrlKey ? 0 : at, ctrlKey ? column : columns[0]),
      End: () => focus(ctrlKey ? tasks.length - 1 : at, ctrlKey ? column : columns.at(-1)),
      ' ': () => onToggle(id),
      Enter: () => onOpen(id),
      a: ctrlKey ? () => onSelect(tasks.map((task) => task.id)) : undefined,
    };
    const act = keys[key];
    if (!act || (ctrlKey && !['Home', 'End', 'a'].includes(key))) return;
    if (key === ' ' && event.target instanceof HTMLInputElement) return; // the browser's own
    event.preventDefault();
    // With shift the way is selected, from where it began.
    if (shiftKey && (key === 'ArrowDown' || key === 'ArrowUp')) {
      const reached = tasks[key === 'ArrowDown' ? at + 1 : at - 1]?.id;
      onSelect(new Set([...selected, id, ...(reached ? [reached] : [])]));
    }
    act();
  };

  return (
    <div
      ref={table}
      class="tasks"
      role="grid"
      aria-label={t('queue')}
      aria-multiselectable
      aria-rowcount={total + 1}
      aria-colcount={columns.length}
      data-column={column}
      data-one-status={oneStatus}
      data-without={without.join(' ')}
      onFocusIn={onFocusIn}
      onKeyDown={onKeyDown}
    >
      <div role="rowgroup">
        <div role="row" class="task-head" aria-rowindex={1}>
          {columns.map((name) => (
            <Heading key={name} name={name} order={order} address={address} />
          ))}
        </div>
      </div>
      <div role="rowgroup">
        {tasks.map((task, i) => (
          <Row
            key={task.id}
            task={task}
            columns={columns}
            index={i + 2}
            isCurrent={task.id === current}
            isSelected={selected.has(task.id)}
            tabColumn={i === at ? column : undefined}
            address={address({ report: task.id })}
            onClick={(event) => (event.detail === 0 ? onOpen : onPick)(task.id)}
            onToggle={onToggle}
          />
        ))}
      </div>
    </div>
  );
}

export const HEADINGS: Record<Exclude<Column, 'select'>, Word> = {
  title: 'report',
  status: 'status',
  category: 'category',
  with: 'work.with',
  filed: 'work.filed',
  score: 'votes',
};

/** The heading of a column; one that the list can be ordered by leads to that. */
function Heading({ name, order, address }: { name: Column } & Pick<TableProps, 'order' | 'address'>) {
  const orders = COLUMN_ORDERS[name];
  const at = orders?.indexOf(order) ?? -1;
  const sorted = at < 0 ? undefined : ASCENDING.includes(order) ? 'ascending' : 'descending';
  const words = name === 'select' ? t('work.selected') : t(HEADINGS[name]);
  const shown =
    name === 'select' || name === 'score' ? ( // narrower than the word
      <>
        {name === 'score' && !sorted && <Icon name="up" />}
        <span class="hidden">{words}</span>
      </>
    ) : (
      words
    );
  return (
    <span role="columnheader" class={`task-${name}`} aria-sort={sorted}>
      {orders ? (
        <a href={address({ order: orders[(at + 1) % orders.length] ?? orders[0] })} tabIndex={-1} title={words}>
          {shown}
        </a>
      ) : (
        <span>{shown}</span>
      )}
    </span>
  );
}

interface RowProps {
  task: Task;
  columns: readonly Column[];
  index: number;
  isCurrent: boolean;
  isSelected: boolean;
  /** The column that Tab leads to, if it leads to this row. */
  tabColumn: Column | undefined;
  address: string;
  onClick(event: MouseEvent): void;
  onToggle(id: string): void;
}

function Row({ task, columns, index, isCurrent, isSelected, tabColumn, address, onClick, onToggle }: RowProps) {
  const { id } = task;
  const isLit = useComputed(() => lit.value?.id === id).value;
  const focusable = (name: Column) => ({ 'data-column': name, tabIndex: name === tabColumn ? 0 : -1 });
  const cell = (name: Column) => ({ role: 'gridcell' as const, class: `task-${name}`, ...focusable(name) });
  const worker = [task.assignee?.name, task.department_name].filter(Boolean).join(' · ');
  const open = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // to another tab
    event.preventDefault();
    event.stopPropagation(); // the router follows what it sees
    onClick(event);
  };
  return (
    <div
      role="row"
      class="task"
      aria-rowindex={index}
      aria-selected={isSelected}
      data-task={id}
      data-lit={isLit}
      {...lights(task)}
      data-current={isCurrent}
      onClick={(event) => event.target instanceof Element && !event.target.closest('input, a') && onClick(event)}
    >
      <span role="gridcell" class="task-select">
        <input
          type="checkbox"
          {...focusable('select')}
          aria-label={t('work.select', { title: task.title })}
          checked={isSelected}
          onChange={() => onToggle(id)}
        />
      </span>
      {columns.includes('category') && (
        <span {...cell('category')} title={categoryName(task)}>
          <Icon name={categoryIcon(categoryOf(task)?.icon ?? '')} />
          <span class="category-name">{categoryName(task)}</span>
        </span>
      )}
      <span role="gridcell" class="task-title">
        <FirstPhoto photos={task.photos} />
        <a href={address} title={task.title} {...focusable('title')} onClick={open}>
          {task.title}
        </a>
        <Overdue level={task.overdue_level} />
        {task.new_comments > 0 && <strong class="mark new-comments">{tn('work.new-comments', task.new_comments)}</strong>}
        {task.duplicate_of && <span class="where mark">{t('work.is-duplicate')}</span>}
        {task.perhaps_of && <strong class="mark">{t('work.perhaps', { title: task.perhaps_of.title })}</strong>}
        {task.visibility === 'officials' && <strong class="mark">{t('private')}</strong>}
        {task.withdrawn_at && <strong class="mark">{t('withdrawn')}</strong>}
        {task.disputed && <strong class="mark disputed">{t('work.reporter.disputed')}</strong>}
        {task.not_answered && <strong class="mark not-answered">{t('work.reporter.not_answered')}</strong>}
        {task.waiting && (
          <span class="where mark" title={t('work.reporter.waiting')}>
            {t('work.waits')}
            {task.question && (
              <>
                {' · '}
                <Time at={task.question.asked_at} />
              </>
            )}
          </span>
        )}
        {(task.asset || task.address) && (
          <span class="where">{[task.asset_name ?? task.asset, task.address].filter(Boolean).join(' · ')}</span>
        )}
      </span>
      {columns.includes('status') && (
        <span {...cell('status')}>
          <Badge status={task.status} />
        </span>
      )}
      {columns.includes('with') && (
        <span {...cell('with')} title={worker || t('work.nobody')}>
          {worker || <span class="hidden">{t('work.nobody')}</span>}
        </span>
      )}
      {columns.includes('filed') && (
        <span {...cell('filed')}>
          <Time at={task.created_at} short />
        </span>
      )}
      {columns.includes('score') && (
        <span {...cell('score')}>
          {number(task.score)} <span class="unit">{tn('score', task.score)}</span>
        </span>
      )}
    </div>
  );
}

/**
 * When the row that has the focus goes, the one that takes its place gets it:
 * the keyboard would begin at the top of the page again.
 */
function useKeptFocus(table: RefObject<HTMLDivElement | null>, tasks: Task[], at: number): void {
  const row = useRef<number | undefined>(undefined);
  useEffect(() => {
    // A click or the focus elsewhere leaves the table.
    const leave = ({ target }: Event) => {
      if (target instanceof Node && !table.current?.contains(target)) row.current = undefined;
    };
    const ways = ['pointerdown', 'focusin'];
    ways.forEach((way) => document.addEventListener(way, leave));
    return () => ways.forEach((way) => document.removeEventListener(way, leave));
  }, []);
  useLayoutEffect(() => {
    if (row.current !== undefined && document.activeElement === document.body) {
      focusTask(table.current, tasks[Math.min(row.current, tasks.length - 1)]?.id);
    }
    row.current = table.current?.contains(document.activeElement) ? at : undefined;
  });
}
