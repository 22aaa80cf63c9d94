/**
 * A city in the browser: reports that were recorded from running services, and what is
 * done with them here. The browser keeps it for all tabs; who is signed in is each tab's own.
 */
import type { Act, Category, Comment, Department, DialogueItem, FeedEvent, HistoryEntry } from '../api/client';
import type { NewReport, Notification, Report, Status, Task, VoteType, Work } from '../api/client';
import type { Session } from '../state/session';
import recorded from './city.json';

export interface Entry {
  report: Report;
  work: Work;
  history: HistoryEntry[];
  comments: (Comment & { by?: string })[];
  dialogue: DialogueItem[];
  /** The reporter's id; empty for people who do not take part. */
  by: string;
  votes: Record<string, VoteType>;
}

interface Recording {
  at: string;
  people: Record<'resident' | 'official' | 'operator', Session>;
  categories: Record<string, { categories: Category[] }>;
  answers: Record<string, object>;
  inbox: Record<'resident' | 'official', Notification[]>;
  reports: Omit<Entry, 'by' | 'votes'>[];
}

/** All that is kept. Lists of what happened are in its order. */
interface State {
  entries: Entry[];
  feed: FeedEvent[];
  /** By the reader's id; officials share one. */
  inbox: Record<string, Notification[]>;
  follows: Record<string, string[]>;
  /** Settings that were changed, by their path. */
  settings: Record<string, object>;
}

export const recording = recorded as unknown as Recording;
export const people = recording.people;

const DAY_MS = 86_400_000;
/** The recording took seconds: its reports are spread over so many days. */
const SPREAD_MS = 21 * DAY_MS;
const KEY = 'cityconnect.try';
const OFFICIALS = 'officials';

/** The text with its times as they would be, had the recording ended now. What was before is longer ago by a factor. */
export function upToDate(text: string, factor = 1): string {
  return text.replace(/"\d{4}-\d\d-\d\dT[\d:.]+Z"/g, (time) => {
    const ago = Date.parse(recording.at) - Date.parse(time.slice(1, -1));
    return JSON.stringify(new Date(Date.now() - ago * (ago > 0 ? factor : 1)));
  });
}

function begin(): State {
  const first = Math.min(...recording.reports.map(({ report }) => Date.parse(report.created_at)));
  const past = { reports: recording.reports, inbox: recording.inbox };
  const { reports, inbox } = JSON.parse(upToDate(JSON.stringify(past), SPREAD_MS / (Date.parse(recording.at) - first))) as typeof past;
  return {
    entries: reports.map((each) => ({ ...each, by: each.report.mine ? people.resident.sub : '', votes: {} })),
    inbox: { [people.resident.sub]: inbox.resident.toReversed(), [OFFICIALS]: inbox.official.toReversed() },
    ...{ feed: [], follows: {}, settings: {} },
  };
}

/** Reads what is kept; a browser that keeps nothing has a new city with each load. */
function read(): State {
  try {
    const kept = window.localStorage.getItem(KEY);
    if (kept) return JSON.parse(kept) as State;
  } catch {
    // Storage may be forbidden.
  }
  return begin();
}

export let city = read();
export let me = JSON.parse(window.sessionStorage.getItem(KEY) ?? 'null') as Session | null;

export const isOfficial = () => me?.role === 'official' || me?.role === 'moderator';
export const inbox = () => city.inbox[isOfficial() ? OFFICIALS : (me?.sub ?? '')] ?? [];
const position = (count: number) => `v1.try.${count}`;
/** Where the reader's own stream is. */
export const upTo = () => ({ unread_count: inbox().filter(({ read }) => !read).length, last_event_id: position(inbox().length) });

/** How much of each list this tab has passed on. */
const passed = { feed: city.feed.length, inbox: inbox().length };

/** Signs in as somebody, or nobody. */
export function signIn(who: Session | null): void {
  me = who;
  passed.inbox = inbox().length;
  window.sessionStorage.setItem(KEY, JSON.stringify(who));
}

/** Makes the city as it was recorded. */
export function startOver(): void {
  window.localStorage.removeItem(KEY);
  city = begin();
}

type Listener = (data: unknown, id: string) => void;
const listeners = { feed: new Set<Listener>(), notifications: new Set<Listener>() };

export function subscribe(stream: keyof typeof listeners, listener: Listener): () => void {
  listeners[stream].add(listener);
  return () => listeners[stream].delete(listener);
}

function passOn(): void {
  for (; passed.feed < city.feed.length; passed.feed++) for (const listener of listeners.feed) listener(city.feed[passed.feed], '');
  for (; passed.inbox < inbox().length; passed.inbox++)
    for (const listener of listeners.notifications) listener(inbox()[passed.inbox], position(passed.inbox + 1));
}

/** Keeps what was done, and passes it on once it is answered. */
export function keep(): void {
  try {
    window.localStorage.setItem(KEY, JSON.stringify(city));
  } catch {
    // It lasts until the next load.
  }
  setTimeout(passOn);
}

window.addEventListener('storage', ({ key }) => {
  if (key !== KEY) return;
  city = read();
  passOn();
});

export const now = () => new Date().toISOString();

/** The consequences of a status, as the services said them. */
function ofStatus(status: Status) {
  const { transitions, closed } = recording.reports.find(({ report }) => report.status === status)!.report;
  return { status, transitions, closed };
}

type Event = Pick<FeedEvent, 'type'> & Partial<FeedEvent>;
type Notice = Pick<Notification, 'type'> & Partial<Notification>;

const about = ({ id: report_id, version: report_version, title: report_title }: Report) => ({
  report_id,
  report_version,
  report_title,
  happened_at: now(),
});

function notify(to: string, { report }: Entry, event: Notice): void {
  if (!to || to === me?.sub) return;
  (city.inbox[to] ??= []).push({ ...about(report), ...event, id: crypto.randomUUID(), created_at: now(), read: false });
}

/** Changes what everybody reads of a report, and notifies everybody, its reporter and its followers. */
function change(entry: Entry, what: Partial<Report>, event: Event): void {
  const { closed: _, ...ofTask } = what;
  const always = { version: entry.report.version + 1, updated_at: now() };
  Object.assign(entry.report, what, always);
  Object.assign(entry.work.report, ofTask, always);
  city.feed.push({ ...about(entry.report), ...event });
  const followers = Object.keys(city.follows).filter((sub) => city.follows[sub]?.includes(entry.report.id));
  for (const to of new Set([entry.by, ...(event.type === 'report.status.updated' ? followers : [])])) notify(to, entry, event);
}

function did({ work }: Entry, act: Pick<Act, 'action'> & Partial<Act>): void {
  work.acts.push({ at: now(), by: { id: me?.sub ?? '', name: me?.name ?? '' }, ...act });
}

/** Changes a report's status; without one it replies. */
export function move(entry: Entry, to: Status | undefined, note = ''): void {
  const { status: before, version } = entry.report;
  const status = to ?? before;
  entry.history.push({ from_status: before, to_status: status, note, version: version + 1, changed_at: now() });
  did(entry, { action: to ? 'move' : 'reply', ...(to && { status }), ...(note && { text: note }) });
  change(entry, ofStatus(status), { type: 'report.status.updated', status, ...(note && { note }), ...(!to && { reply: true }) });
}

/** Votes; without a type the vote is withdrawn. */
export function vote(entry: Entry, type?: VoteType) {
  const worth = (of?: VoteType) => ({ upvote: 1, downvote: -1, none: 0 })[of ?? 'none'];
  const sub = me?.sub ?? '';
  const before = entry.votes[sub];
  const score = entry.report.score + worth(type) - worth(before);
  if (type) entry.votes[sub] = type;
  else delete entry.votes[sub];
  change(entry, { score }, { type: 'report.vote.received', vote_type: type ?? before ?? 'upvote', score, retracted: !type });
  return { report_id: entry.report.id, score, version: entry.report.version, ...(type && { vote_type: type }) };
}

export const departments = () =>
  (city.settings['/reports/departments'] ?? recording.answers['/reports/departments']) as { departments: Department[] };

export function file({
  title,
  description,
  category_id,
  privacy_level,
  visibility = 'public',
  address = '',
  latitude,
  longitude,
}: NewReport): Entry {
  const category = recording.categories.en?.categories.find(({ id }) => id === category_id);
  const department = departments().departments.find(({ category_ids }) => category_ids.includes(category_id));
  const { closed, ...pending } = ofStatus('pending');
  const common = {
    ...{ id: crypto.randomUUID(), title, category_id, category_name: category?.name ?? '', address, privacy_level, visibility },
    ...{ ...pending, score: 0, version: 1, created_at: now(), updated_at: now(), photos: [] },
    ...(latitude !== undefined && longitude !== undefined && { latitude, longitude }),
  };
  const task: Task = {
    ...{ ...common, overdue_level: 0, notes: 0, waiting: false, not_answered: false, abuse_reports: 0, new_comments: 0, disputed: false },
    routed: department !== undefined,
    ...(department && { department_id: department.id, department_name: department.name }),
  };
  const entry: Entry = {
    report: { ...common, description, closed, mine: false, ...(privacy_level === 'public' && { reporter_name: me?.name ?? '' }) },
    work: { report: task, duplicates: [], disputes: [], acts: [] },
    history: [{ to_status: 'pending', note: '', version: 1, changed_at: now() }],
    ...{ comments: [], dialogue: [], by: me?.sub ?? '', votes: {} },
  };
  city.entries.push(entry);
  const event: Event = { type: 'report.created', category_id, category_name: common.category_name };
  city.feed.push({ ...about(entry.report), ...event });
  notify(OFFICIALS, entry, event);
  return entry;
}

export function comment(entry: Entry, text: string, anonymous: boolean): Comment {
  const written = {
    id: crypto.randomUUID(),
    text,
    anonymous,
    mine: true,
    created_at: now(),
    ...(!anonymous && { author_name: me?.name ?? '' }),
  };
  entry.comments.push({ ...written, by: me?.sub ?? '' });
  if (!isOfficial()) entry.work.report.new_comments++;
  change(entry, {}, { type: 'report.commented' });
  return written;
}

export function note(entry: Entry, text: string): void {
  did(entry, { action: 'note', text });
  entry.work.report.notes++;
}

export function assign({ work }: Entry, assignee: Task['assignee'], department_id: number | undefined): void {
  const { assignee: _, ...rest } = work.report;
  const department = departments().departments.find(({ id }) => id === department_id);
  const of = department && { department_id: department.id, department_name: department.name, routed: false };
  work.report = { ...rest, ...of, ...(assignee && { assignee }) };
  did({ work } as Entry, {
    action: 'assign',
    ...(assignee && { assignee }),
    ...(of && { department_id: of.department_id, department_name: of.department_name }),
  });
}

/** Asks the reporter something. */
export function question(entry: Entry, text: string): DialogueItem {
  const ends_on = new Date(Date.now() + 14 * DAY_MS).toISOString().slice(0, 10);
  const asked: DialogueItem = { id: crypto.randomUUID(), kind: 'question', text, created_at: now(), state: 'open', ends_on };
  entry.dialogue.push(asked);
  entry.report.question = entry.work.report.question = { id: asked.id, asked_at: asked.created_at, ends_on };
  entry.work.report.waiting = true;
  did(entry, { action: 'ask', text });
  notify(entry.by, entry, { type: 'report.question.asked', question_id: asked.id, ends_on });
  return asked;
}

/** Answers the open question, as its reporter. */
export function reply(entry: Entry, text: string): DialogueItem {
  const open = entry.dialogue.find(({ state }) => state === 'open');
  if (open) open.state = 'answered';
  for (const report of [entry.report, entry.work.report]) delete report.question;
  entry.work.report.waiting = false;
  const written: DialogueItem = { id: crypto.randomUUID(), kind: 'answer', text, created_at: now() };
  entry.dialogue.push(written);
  notify(OFFICIALS, entry, { type: 'report.answered' });
  return written;
}
