/** The filters of the officials' queue: a row for each, which the address, the API, the list and saved views read. */
import { STATUSES, type Source, type Task } from '../api/client';
import type { paths } from '../api/report.gen';
import { session } from './session';

export type Order = 'oldest' | 'newest' | 'due' | 'changed' | 'score';
export const ORDERS: readonly Order[] = ['oldest', 'newest', 'due', 'changed', 'score'];

/** How an official may have received a report that somebody else makes. */
export const SOURCES: readonly Source[] = ['telephone', 'counter', 'letter', 'inspection'];
/** The states of a dialogue: a question, one that had no answer in time, or a report that is not fixed. */
export const OF_REPORTERS = ['waiting', 'not_answered', 'disputed'] as const;
/** How far a report may be overdue: each level is another time that its target is over. */
export const LEVELS = [1, 2, 3];

/** The filters as the API takes them. */
export type QueueQuery = NonNullable<paths['/reports/queue/counts']['get']['parameters']['query']>;

interface Filter<Value> {
  /** The value that an address has; text is empty if it has none. */
  read(text: string): Value;
  ask(value: Value): QueueQuery | false;
  /** Whether a task still has the value, as far as acts and events change it; absent if they never do. */
  fits?(task: Task, value: Value): unknown;
}

/** Gives a row the type of its value. */
const row = <Value>(filter: Filter<Value>) => filter;
const list = (text: string) => text.split(',').filter(Boolean);
const numbers = (text: string) =>
  list(text)
    .map(Number)
    .filter((id) => id > 0);
const isSet = (text: string) => text !== '';
const any = (value: unknown[]) => value.length === 0;

export const FILTERS = {
  /** Without one in the address it is what nobody has begun. */
  status: row({
    read: (text) => STATUSES.filter((each) => each === (text || 'pending')),
    ask: (status) => ({ status }),
    fits: ({ status }, value) => any(value) || value.includes(status),
  }),
  category: row({ read: numbers, ask: (category) => ({ category }) }),
  department: row({
    read: numbers,
    ask: (department) => ({ department }),
    fits: ({ department_id = 0 }, value) => any(value) || value.includes(department_id),
  }),
  /** Codes of areas. */
  area: row({ read: list, ask: (area) => ({ area }), fits: ({ area = '' }, value) => any(value) || value.includes(area) }),
  /** An official's id, `me`, `none`, or empty for anyone. */
  assignee: row({
    read: String,
    ask: (assignee) => isSet(assignee) && { assignee },
    fits: ({ assignee }, value) =>
      !value || (value === 'none' ? !assignee : assignee?.id === (value === 'me' ? session.value?.sub : value)),
  }),
  q: row({ read: String, ask: (q) => isSet(q) && { q } }),
  /** West, south, east, north. */
  bbox: row({ read: String, ask: (bbox) => isSet(bbox) && { bbox } }),
  /** Days of filing in the reader's time zone, such as 2026-11-22; both are included. */
  from: row({ read: String, ask: (day) => dayBegins(day, 0, (filed_from) => ({ filed_from })) }),
  to: row({ read: String, ask: (day) => dayBegins(day, 1, (filed_to) => ({ filed_to })) }),
  /** Only what is overdue at this level or a higher one; 0 for all. */
  overdue: row({
    read: (text) => LEVELS.find((level) => level === Number(text)) ?? 0,
    ask: (overdue) => overdue > 0 && { overdue },
  }),
  /** Only what is hidden; without it none of that. */
  hidden: row({
    read: isSet,
    ask: (hidden) => hidden && { hidden },
    fits: ({ hidden_reason, withdrawn_at }, value) => withdrawn_at !== undefined || value === (hidden_reason !== undefined),
  }),
  /** Only what its reporters have withdrawn, likewise. */
  withdrawn: row({
    read: isSet,
    ask: (withdrawn) => withdrawn && { withdrawn },
    fits: ({ withdrawn_at }, value) => value === (withdrawn_at !== undefined),
  }),
  /** Only what has comments that no official has seen. */
  comments: row({
    read: isSet,
    ask: (on) => on && { new_comments: true },
    fits: ({ new_comments }, value) => !value || new_comments > 0,
  }),
  /** Only what officials filed for somebody, and came in this way. */
  source: row({
    read: (text) => SOURCES.find((each) => each === text) ?? '',
    ask: (source) => source !== '' && { source: [source] },
  }),
  /** Only where this is between officials and the reporter. */
  reporter: row({
    read: (text) => OF_REPORTERS.find((each) => each === text) ?? '',
    ask: (reporter) => reporter !== '' && { [reporter]: true },
    fits: (task, value) => value === '' || task[value],
  }),
};

type Name = keyof typeof FILTERS;
export type QueueFilters = { [Key in Name]: ReturnType<(typeof FILTERS)[Key]['read']> };

/** The rows with their names, whatever the types of their values are. */
const rows = Object.entries(FILTERS) as [Name, Filter<unknown>][];

/** The address of a queue that nothing narrows but the status. */
export const NO_FILTERS: Record<string, string> = Object.fromEntries(rows.flatMap(([name]) => (name === 'status' ? [] : [[name, '']])));

/** The filters that an address has. */
export const filtersOf = (query: URLSearchParams) =>
  Object.fromEntries(rows.map(([name, { read }]) => [name, read(query.get(name) ?? '')])) as QueueFilters;

export const queryOf = (filters: QueueFilters): QueueQuery =>
  Object.assign({}, ...rows.map(([name, { ask }]) => ask(filters[name]) || {})) as QueueQuery;

/** Whether a task is what the filters ask for, as far as acts and events change it. */
export const fits = (filters: QueueFilters, task: Task) => rows.every(([name, { fits }]) => !fits || fits(task, filters[name]));

/** The filters that narrow the queue, without the status. */
export const narrowing = (filters: QueueFilters): Name[] =>
  rows.flatMap(([name]) => (name === 'status' || !filters[name] || any([filters[name]].flat()) ? [] : [name]));

/** Asks for the moment at which a day begins here, so many days later; false if it is not a day. */
function dayBegins(day: string, later: number, ask: (at: string) => QueueQuery): QueueQuery | false {
  const date = new Date(`${day}T00:00`);
  if (Number.isNaN(date.getTime())) return false;
  date.setDate(date.getDate() + later);
  return ask(date.toISOString());
}
