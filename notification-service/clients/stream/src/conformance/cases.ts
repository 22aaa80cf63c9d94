/** The promises of the stream's manual, case by case. A case returns if the promise holds. */
import { steps } from '../position.js';
import { Connection, pause, type RawEvent, type Target } from './connection.js';

/** A promise that does not hold. */
export class Failure extends Error {}

/** A case that cannot be provoked. */
export class Skip extends Error {}

/** How the suite has things happen at the server. */
export type Trigger = 'notify' | 'break' | 'drain' | 'overload';

export interface Suite extends Target {
  /** Has it happen; throws Skip where nobody has said how. */
  trigger(what: Trigger): Promise<void>;
  /** The outcome of PROVOKED notifications over one connection: provoked once, and judged by several cases. */
  live?: Promise<Live>;
}

interface Live {
  /** Where the stream began. */
  from: string;
  notifications: RawEvent[];
}

const PROVOKED = 5;
/** The server writes at least every 22 s. */
const SILENCE_MS = 25_000;
/** For how long after the last expected event another could still come that is too much. */
const AFTERMATH_MS = 1_000;

function check(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Failure(otherwise);
}

/** Opens a stream that begins, and waits for its first events. */
async function begun(suite: Suite, cursor = '', url = suite.url): Promise<{ connection: Connection; ready: RawEvent }> {
  const connection = await Connection.open(suite, cursor, url);
  check(connection.answer.status === 200, `a stream is answered ${connection.answer.status}`);
  check(await connection.until(() => connection.of('ready').length > 0), 'a stream does not begin with ready');
  const ready = connection.of('ready')[0];
  check(ready !== undefined, 'there is no ready');
  return { connection, ready };
}

async function provokeLive(suite: Suite): Promise<Live> {
  const { connection, ready } = await begun(suite);
  for (let i = 0; i < PROVOKED; i++) await suite.trigger('notify');
  const distinct = () => new Set(connection.of('notification').map(({ data }) => data.id)).size;
  await connection.until(() => distinct() >= PROVOKED);
  await pause(AFTERMATH_MS);
  connection.close();
  return { from: ready.id, notifications: connection.of('notification') };
}

const live = (suite: Suite) => (suite.live ??= provokeLive(suite));

/** The numbers of notifications, from where their stream began: 1 is the first. */
async function numbers(suite: Suite): Promise<number[]> {
  const { from, notifications } = await live(suite);
  if (notifications.some(({ id }) => id === '') || from === '') throw new Skip('events have no ids');
  return notifications.map(({ id }) => steps(id, from));
}

async function contentType(suite: Suite): Promise<void> {
  const { connection } = await begun(suite);
  connection.close();
  const header = (name: string) => connection.answer.headers.get(name) ?? '';
  check(/^text\/event-stream\b/.test(header('Content-Type')), `Content-Type is “${header('Content-Type')}”, must be text/event-stream`);
  check(/no-store/.test(header('Cache-Control')), `Cache-Control is “${header('Cache-Control')}”, must have no-store`);
  check(header('Content-Encoding') === '', `the stream is compressed: ${header('Content-Encoding')}`);
}

async function retryField(suite: Suite): Promise<void> {
  const { connection } = await begun(suite);
  connection.close();
  const { retryMs } = connection;
  check(retryMs !== undefined, 'a stream does not begin with retry');
  check(retryMs >= 100 && retryMs <= 60_000, `retry is ${retryMs}, must be between 100 and 60000`);
}

async function readyEvent(suite: Suite): Promise<void> {
  const { connection, ready } = await begun(suite);
  connection.close();
  check(connection.events[0] === ready, `the first event is ${connection.events[0]?.type}, must be ready`);
  check(/^[\w.]{1,63}$/.test(ready.id), `the id of ready is “${ready.id}”, must be a cursor`);
  check(Number.isInteger(ready.data.unread_count), 'ready has no unread_count');
  check(typeof ready.data.last_event_id === 'string', 'ready has no last_event_id');
}

async function authRefused(suite: Suite): Promise<void> {
  for (const [who, headers] of [
    ['nobody', {}],
    ['a token that is none', { Authorization: 'Bearer none' }],
  ] as const) {
    const connection = await Connection.open(suite, '', suite.url, headers);
    connection.close();
    check(connection.answer.status === 401, `${who} is answered ${connection.answer.status}, must be 401`);
  }
}

async function badCursor(suite: Suite): Promise<void> {
  const long = await Connection.open(suite, `v1.${'a'.repeat(1_100)}.1`);
  long.close();
  check(long.answer.status === 400, `a cursor of 1,100 characters is answered ${long.answer.status}, must be 400`);
  const nul = await Connection.open(suite, '', `${suite.url}?last_event_id=v1%00.1`);
  nul.close();
  check(nul.answer.status === 400, `a cursor with a NUL is answered ${nul.answer.status}, must be 400`);
}

async function reset(suite: Suite): Promise<void> {
  const { connection, ready } = await begun(suite, 'v1.ffffffff.1');
  connection.close();
  const [resetEvent] = connection.of('reset');
  check(resetEvent !== undefined, 'an unknown cursor is not answered with reset');
  check(resetEvent.data.reason === 'unknown_cursor', `the reason is ${String(resetEvent.data.reason)}, must be unknown_cursor`);
  check(connection.events.indexOf(resetEvent) < connection.events.indexOf(ready), 'reset comes after ready');
  check(resetEvent.id !== '' && resetEvent.id !== 'v1.ffffffff.1', 'reset has no id from which the stream goes on');
}

/** After a reset the list is read again: the stream continues at its end, not before it or behind it. */
async function resetAtEnd(suite: Suite): Promise<void> {
  const { connection, ready } = await begun(suite, 'v1.ffffffff.1');
  connection.close();
  const [resetEvent] = connection.of('reset');
  check(resetEvent !== undefined, 'an unknown cursor is not answered with reset');
  const end = String(ready.data.last_event_id);
  check(resetEvent.id === end, `the id of reset is ${resetEvent.id || 'missing'}, must be the last_event_id of ready, ${end}`);
}

async function ids(suite: Suite): Promise<void> {
  const { from, notifications } = await live(suite);
  check(from !== '', 'ready has no id');
  const without = notifications.filter(({ id }) => id === '').length;
  check(without === 0, `${without} of ${notifications.length} notifications have no id`);
}

/** The fields of every notification, whatever it is about. */
async function fields(suite: Suite): Promise<void> {
  for (const { id, data } of (await live(suite)).notifications) {
    for (const name of ['id', 'type', 'report_id', 'created_at']) {
      check(typeof data[name] === 'string' && data[name] !== '', `${name} of the notification ${id} is ${JSON.stringify(data[name])}`);
    }
    check(
      !Number.isNaN(Date.parse(String(data.created_at))),
      `created_at of the notification ${id} is ${String(data.created_at)}, must be a time`,
    );
    check(data.read === false, `read of the notification ${id} is ${JSON.stringify(data.read)}, must be false`);
  }
}

async function order(suite: Suite): Promise<void> {
  const all = await numbers(suite);
  check(
    all.every((n, i) => n >= (all[i - 1] ?? 0)),
    `notifications come in the order ${all.join(', ')}`,
  );
}

async function gap(suite: Suite): Promise<void> {
  const all = await numbers(suite);
  const missing = Array.from({ length: Math.max(PROVOKED, ...all) }, (_, i) => i + 1).filter((n) => !all.includes(n));
  check(missing.length === 0, `${PROVOKED} notifications were provoked, and ${missing.length} are missing: ${missing.join(', ')}`);
}

async function duplicates(suite: Suite): Promise<void> {
  const { notifications } = await live(suite);
  const twice = notifications.filter(({ data }, i) => notifications.findIndex((other) => other.data.id === data.id) < i);
  check(twice.length === 0, `came more than once: ${twice.map(({ id, data }) => id || String(data.id)).join(', ')}`);
}

/** Resumes after the second of the notifications that were provoked. */
async function resumeAt(suite: Suite, open: (id: string, other: string) => Promise<{ connection: Connection; ready: RawEvent }>) {
  await numbers(suite); // without ids nothing can be resumed
  const { notifications } = await live(suite);
  const [second, last] = [notifications[1], notifications.at(-1)];
  check(second !== undefined && last !== undefined, 'too few notifications came');
  const { connection, ready } = await open(second.id, last.id);
  check(ready.id === second.id, `the stream goes on at ${ready.id}, must be the cursor ${second.id}`);
  const want = notifications.slice(2);
  await connection.until(() => connection.of('notification').length >= want.length);
  await pause(AFTERMATH_MS);
  connection.close();
  const [got, wanted] = [connection.of('notification'), want].map((events) => events.map(({ id }) => id).join(', '));
  check(got === wanted, `after ${second.id} came ${got || 'nothing'}, must be ${wanted}`);
}

const resume = (suite: Suite) => resumeAt(suite, (id) => begun(suite, id));

async function resumeByQuery(suite: Suite): Promise<void> {
  const url = (id: string) => `${suite.url}?last_event_id=${encodeURIComponent(id)}`;
  await resumeAt(suite, (id) => begun(suite, '', url(id)));
  await resumeAt(suite, (id, other) => begun(suite, id, url(other)));
}

async function heartbeat(suite: Suite): Promise<void> {
  const { connection } = await begun(suite);
  for (const nth of [1, 2]) {
    const came = await connection.until(() => connection.of('hb').length >= nth, SILENCE_MS);
    check(came, `nothing came for ${SILENCE_MS / 1_000} s, must be hb`);
  }
  connection.close();
  check(
    connection.of('hb').every(({ id }) => id === ''),
    'hb has an id, must have none',
  );
}

/** Has it happen, and again while it fails: a part of the server may be away. */
async function insist(suite: Suite, what: Trigger): Promise<void> {
  for (const end = Date.now() + suite.patienceMs; ;) {
    try {
      return await suite.trigger(what);
    } catch (error) {
      if (error instanceof Skip || Date.now() > end) throw error;
      await pause(500);
    }
  }
}

/** Follows a stream over its ends, by what it says and nothing else, until so many notifications have come. */
async function followed(suite: Suite, first: Connection, from: string, want: () => number): Promise<number[]> {
  const all: RawEvent[] = [];
  let connection: Connection | undefined = first;
  let cursor = from;
  for (const end = Date.now() + suite.patienceMs * 3; ;) {
    const one: Connection | undefined = connection;
    if (one) {
      await one.until(() => one.ended !== undefined || new Set([...all, ...one.of('notification')].map(({ id }) => id)).size >= want());
      all.push(...one.of('notification'));
      cursor = one.events.filter(({ id }) => id !== '').at(-1)?.id ?? cursor;
      one.close();
    }
    if (new Set(all.map(({ id }) => id)).size >= want() || Date.now() > end) return all.map(({ id }) => steps(id, from));
    await pause(Math.min(one?.retryMs ?? 1_000, suite.patienceMs));
    connection = await Connection.open(suite, cursor).catch(() => undefined);
  }
}

/** Lets a stream end, and judges what comes of it afterwards. */
async function over(suite: Suite, what: Trigger, judge: (ended: Connection) => void): Promise<void> {
  const { connection, ready } = await begun(suite);
  await insist(suite, what);
  if (!(await connection.until(() => connection.ended !== undefined))) {
    connection.close();
    throw new Skip(`the stream goes on after --${what}`);
  }
  judge(connection);
  for (let i = 0; i < PROVOKED; i++) await insist(suite, 'notify');
  const all = await followed(suite, connection, ready.id, () => PROVOKED);
  const wanted = Array.from({ length: Math.max(PROVOKED, all.length) }, (_, i) => i + 1).join(', ');
  check(all.join(', ') === wanted, `over the end came ${all.join(', ') || 'nothing'}, must be ${wanted}`);
}

const broken = (suite: Suite) => over(suite, 'break', () => {});

const drain = (suite: Suite) =>
  over(suite, 'drain', ({ ended, retryMs }) => {
    check(ended === 'cleanly', 'the connection broke, must end');
    check(retryMs !== undefined && retryMs <= 5_000, `retry before a planned end is ${retryMs}, must be 5000 at most`);
  });

async function overload(suite: Suite): Promise<void> {
  await suite.trigger('overload');
  const connection = await Connection.open(suite);
  const { status, headers } = connection.answer;
  const began = status === 200 && !(await connection.until(() => connection.ended !== undefined, 2_000));
  connection.close();
  if (began) throw new Skip('the server accepts streams after --overload');
  if (status === 429 || status === 503) {
    check(headers.has('Retry-After'), `${status} has no Retry-After`);
    return;
  }
  check(status === 200, `a stream too many is answered ${status}, must be 200 with retry, or 429 or 503 with Retry-After`);
  check(connection.events.length === 0, `a stream too many has ${connection.events[0]?.type}, must have nothing but retry`);
  check(connection.retryMs !== undefined, 'a stream too many ends without retry');
}

/** The cases by name, in their order. Overload comes last: the server may stay full. */
export const CASES: Record<string, (suite: Suite) => Promise<void>> = {
  'content-type': contentType,
  retry: retryField,
  ready: readyEvent,
  'auth-refused': authRefused,
  'bad-cursor': badCursor,
  reset,
  'reset-at-end': resetAtEnd,
  ids,
  fields,
  order,
  gap,
  duplicates,
  resume,
  'resume-by-query': resumeByQuery,
  heartbeat,
  break: broken,
  drain,
  overload,
};
