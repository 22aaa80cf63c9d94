/**
 * The services' answers about the city in the browser: of reports as they are here, of
 * the rest as it was recorded. What only running services can do is refused.
 */
import type { Assignment, Comment, NewReport, Report, Task, VoteType } from '../api/client';
import type { Config } from '../state/config';
import type { Role, Session } from '../state/session';
import * as acts from './city';
import { city, inbox, isOfficial, keep, me, people, recording, signIn, upTo, upToDate, type Entry } from './city';

const CONFIG: Config = {
  auth: { mode: 'dev' },
  comments: true,
  map: { bounds: [106.7, -6.7, 106.9, -6.5], center: [106.7995, -6.595, 15] },
  city: { name: 'Bogor', languages: ['id', 'en'], logo: 'icon.svg' },
};

type Query = URLSearchParams;
/** All fields that a request may have in its body. */
type Body = NewReport &
  Assignment & { text: string; anonymous: boolean; vote_type: VoteType; note?: string; read: boolean; name: string; role: Role } & Pick<
    Report,
    'status'
  >;

interface Call {
  id: string;
  query: Query;
  body: Body;
  headers: Headers;
}

/** A problem that the city answers with; its kind has words in the page's languages. */
class Refusal {
  constructor(
    readonly status: number,
    readonly kind: string,
  ) {}
}

/** A report as the reader sees it. */
function view({ report: { question, verdict: _, my_vote: __, ...report }, by, votes }: Entry): Report {
  const mine = me !== null && by === me.sub;
  const vote = votes[me?.sub ?? ''];
  return { ...report, mine, ...(mine && question && { question }), ...(vote && { my_vote: vote }) };
}

const showComment = ({ by, ...comment }: Entry['comments'][number]): Comment => ({ ...comment, mine: by !== undefined && by === me?.sub });

const all = (query: Query, name: string) => query.getAll(name).flatMap((each) => each.split(',').filter(Boolean));
const among = (query: Query, name: string, value: unknown) => !query.has(name) || all(query, name).includes(String(value));

/** Whether a report is among what a list is asked for, whatever its status. */
function fits({ report, work: { report: task } }: Entry, query: Query): boolean {
  const [west = -180, south = -90, east = 180, north = 90] = all(query, 'bbox').map(Number);
  const { latitude = 91, longitude = 181, title, description, address, created_at } = report;
  const assignee = query.get('assignee');
  const words = `${title} ${description} ${address}`.toLowerCase();
  return (
    among(query, 'category', report.category_id) &&
    among(query, 'department', task.department_id) &&
    (!assignee || (assignee === 'none' ? !task.assignee : task.assignee?.id === (assignee === 'me' ? me?.sub : assignee))) &&
    words.includes((query.get('q') ?? '').toLowerCase()) &&
    (!query.has('bbox') || (longitude >= west && longitude <= east && latitude >= south && latitude <= north)) &&
    created_at >= (query.get('filed_from') ?? '') &&
    created_at < (query.get('filed_to') ?? '9') &&
    (!query.has('waiting') || task.waiting) &&
    (!query.has('new_comments') || task.new_comments > 0) &&
    ['hidden', 'withdrawn', 'overdue', 'source', 'area', 'not_answered', 'disputed'].every((name) => !query.has(name))
  );
}

const later = (a: string, b: string) => (a < b ? 1 : -1);
const ORDERS: Record<string, (a: Entry, b: Entry) => number> = {
  newest: (a, b) => later(a.report.created_at, b.report.created_at),
  oldest: (a, b) => later(b.report.created_at, a.report.created_at),
  changed: (a, b) => later(a.report.updated_at, b.report.updated_at),
  due: (a, b) => later(b.work.report.due_at ?? '9', a.work.report.due_at ?? '9'),
  score: (a, b) => b.report.score - a.report.score,
};

/** A page of the reports that a list is asked for. */
function list<T>(query: Query, order: string, show: (entry: Entry) => T, which = (_: Entry) => true) {
  const found = city.entries
    .filter((entry) => which(entry) && among(query, 'status', entry.report.status) && fits(entry, query))
    .sort(ORDERS[query.get('order') ?? order]);
  const { items, ...rest } = pageOf(found, query, 20);
  return { reports: items.map(show), ...rest };
}

function pageOf<T>(items: T[], query: Query, limit: number) {
  const from = Number(query.get('cursor') ?? 0);
  const to = from + Number(query.get('limit') ?? limit);
  return { items: items.slice(from, to), ...(to < items.length && { next_cursor: String(to) }) };
}

const isSeen = ({ report, by }: Entry) => report.visibility === 'public' || by === me?.sub || isOfficial();

function figures() {
  const resolved = city.entries.filter(({ report }) => report.status === 'resolved').map(({ report }) => report);
  const seconds = resolved.map((report) => (Date.parse(report.updated_at) - Date.parse(report.created_at)) / 1000).sort((a, b) => a - b);
  const median_seconds = Math.round(seconds[seconds.length >> 1] ?? 0);
  return { open: city.entries.filter(({ report }) => !report.closed).length, resolved: resolved.length, median_seconds };
}

/** How many tasks have each value. */
function tally<T>(tasks: Task[], of: (task: Task) => T) {
  const counts = new Map<string, T & { count: number }>();
  for (const value of tasks.map(of)) {
    const key = JSON.stringify(value);
    counts.set(key, { ...value, count: (counts.get(key)?.count ?? 0) + 1 });
  }
  return [...counts.values()];
}

function queueCounts(query: Query) {
  const tasks = city.entries.filter((entry) => fits(entry, query)).map(({ work }) => work.report);
  const shown = tasks.filter(({ status }) => among(query, 'status', status));
  return {
    total: shown.length,
    disputed: 0,
    statuses: tally(tasks, ({ status }) => ({ status })),
    categories: tally(shown, ({ category_id }) => ({ category_id })),
    departments: tally(shown, ({ department_id }) => ({ ...(department_id && { department_id }) })),
    assignees: tally(shown, ({ assignee }) => ({ ...assignee })),
    areas: [],
  };
}

function entryOf({ id, headers }: Call): Entry {
  const entry = city.entries.find(({ report }) => report.id === id);
  if (!entry || !isSeen(entry)) throw new Refusal(404, 'not-found');
  // It is to be changed as the reader has seen it.
  if (![null, `"${entry.report.version}"`].includes(headers.get('If-Match'))) throw new Refusal(412, 'stale-version');
  return entry;
}

/** Answers with what officials see of a report, once something is done with it. */
const work = (act: (entry: Entry, body: Body) => void) => (call: Call) => {
  act(entryOf(call), call.body);
  return entryOf(call).work;
};

const follows = () => (city.follows[me?.sub ?? ''] ??= []);
const languageOf = (headers: Headers) => (headers.get('Accept-Language') ?? navigator.language).slice(0, 2);

const operations: Record<string, (call: Call) => unknown> = {
  'GET /config.json': () => CONFIG,
  'GET /session': () => me ?? undefined,
  'POST /dev/token': ({ body: { name, role } }) => {
    const known = Object.values(people).find((each) => each.role === role && each.name === name);
    return { access_token: encodeURIComponent(JSON.stringify(known ?? { ...people.resident, sub: `${role}-${name}`, name, role })) };
  },
  'POST /session': ({ headers }) => {
    signIn(JSON.parse(decodeURIComponent(headers.get('Authorization')!.slice('Bearer '.length))) as Session);
    return me;
  },
  'DELETE /session': () => signIn(null),
  'GET /categories': ({ headers }) => recording.categories[languageOf(headers)] ?? recording.categories.en,

  'GET /reports': ({ query }) => ({ ...list(query, 'newest', view, isSeen), ...(query.has('figures') && { figures: figures() }) }),
  'GET /reports/mine': ({ query }) => list(query, 'newest', view, ({ by }) => by === me?.sub),
  'POST /reports': ({ body }) => view(acts.file(body)),
  'GET /reports/{id}': (call) => view(entryOf(call)),
  'GET /reports/{id}/history': (call) => ({ history: entryOf(call).history }),
  'GET /reports/{id}/outlook': (call) => {
    const { department_name } = entryOf(call).work.report;
    return { ...(department_name && { department_name }) };
  },
  'GET /reports/{id}/photos': () => ({ photos: [] }),
  'GET /reports/{id}/dialogue': (call) => ({ items: entryOf(call).dialogue }),
  'GET /reports/{id}/comments': (call) => ({ comments: entryOf(call).comments.map(showComment), count: entryOf(call).comments.length }),
  'POST /reports/{id}/comments': (call) => acts.comment(entryOf(call), call.body.text, call.body.anonymous),
  'POST /reports/{id}/answers': (call) => acts.reply(entryOf(call), call.body.text),
  'POST /reports/{id}/vote': (call) => acts.vote(entryOf(call), call.body.vote_type),
  'DELETE /reports/{id}/vote': (call) => acts.vote(entryOf(call)),

  'GET /reports/me': () => ({ scope: 'city', moderator: true, departments: [], unknown: [] }),
  'GET /reports/queue': ({ query }) => list(query, 'oldest', ({ work }) => work.report),
  'GET /reports/queue/counts': ({ query }) => queueCounts(query),
  'GET /reports/queue/waiting': () => {
    const commented = city.entries.filter(({ work }) => work.report.new_comments > 0);
    return { new_comments: commented.length, abuse_reports: 0, held_photos: 0, disputed: 0 };
  },
  'GET /reports/{id}/work': work(() => {}),
  'PATCH /reports/{id}/status': (call) => {
    const entry = entryOf(call);
    acts.move(entry, call.body.status, call.body.note);
    return view(entry);
  },
  'POST /reports/{id}/replies': work((entry, { text }) => acts.move(entry, undefined, text)),
  'POST /reports/{id}/notes': work((entry, { text }) => acts.note(entry, text)),
  'PUT /reports/{id}/assignment': work((entry, { assignee, department_id }) => acts.assign(entry, assignee, department_id)),
  'POST /reports/{id}/questions': (call) => acts.question(entryOf(call), call.body.text),
  'PUT /reports/{id}/comments/{id}/seen': work(({ work }) => (work.report.new_comments = 0)),

  'GET /notifications': ({ query }) => {
    const { items, ...rest } = pageOf(inbox().toReversed(), query, 50);
    return { notifications: items, only_own: false, ...upTo(), ...rest };
  },
  'PATCH /notifications/{id}': ({ id, body: { read } }) => Object.assign(inbox().find((each) => each.id === id) ?? {}, { read }),
  'POST /notifications/read-all': () => {
    for (const each of inbox()) each.read = true;
    return upTo();
  },
  'GET /me/follows': () => ({ follows: follows().map((report_id) => ({ report_id })) }),
  'PUT /me/follows/{id}': ({ id }) => void follows().unshift(id),
  'DELETE /me/follows/{id}': ({ id }) => void (city.follows[me?.sub ?? ''] = follows().filter((each) => each !== id)),
};

const patterns = Object.entries(operations).map(([name, act]) => ({
  at: new RegExp(`^${name.replaceAll('{id}', '([0-9a-f-]{36})')}$`),
  act,
}));
const paths = Object.keys(recording.answers).map((path) => ({ path, at: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`) }));

/** Answers what was recorded; a setting is what was put in its place. */
function asRecorded(method: string, path: string, body: object): object {
  const found = path in recording.answers ? path : paths.find(({ at }) => at.test(path))?.path;
  const before = city.settings[path] ?? (JSON.parse(upToDate(JSON.stringify(recording.answers[found ?? ''] ?? null))) as object | null);
  const isSetting = method === 'PUT' && before && Object.keys(body).every((name) => name in before);
  if (!before || (method !== 'GET' && !isSetting)) throw new Refusal(404, 'not-here');
  return method === 'GET' ? before : (city.settings[path] = { ...before, ...body });
}

/** Answers a request as the services would. */
export function answer(method: string, { pathname, searchParams: query }: URL, body: object, headers: Headers) {
  try {
    const name = `${method} ${pathname}`;
    const found = patterns.find(({ at }) => at.test(name));
    const call = { id: found?.at.exec(name)?.[1] ?? '', query, body: body as Body, headers };
    const value = found ? found.act(call) : asRecorded(method, pathname, body);
    if (method !== 'GET') keep();
    return { status: value === undefined ? 204 : 200, value, tag: `"${languageOf(headers)}"` };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { status, kind } = error;
    return { status, value: { type: `problems#${kind}`, title: kind, status }, tag: '' };
  }
}

/** Reports that the tour shows: one that has a question for its reporter, and one of others that waits and matters to many. */
export function examples() {
  const mine = ({ by }: Entry) => by === people.resident.sub;
  const waiting = city.entries.filter((entry) => entry.report.status === 'pending' && !mine(entry)).sort(ORDERS.score);
  return {
    popular: waiting[0]?.report.id ?? '',
    asked: city.entries.find((entry) => mine(entry) && entry.dialogue.length > 0)?.report.id ?? '',
  };
}
