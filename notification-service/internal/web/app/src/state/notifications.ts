/** The user's notifications, and how many of them are unread. */
import { batch, signal } from '@preact/signals';

import { must, notificationService, type Notification } from '../api/client';
import { describe } from '../ui/describe';
import { href, route } from '../ui/router';
import { onChange, onStream, startAt, announceChange } from '../live/live';
import { isAhead, furthest } from '@cityconnect/stream/position';
import { watchFeed } from './feed';
import { toast } from './toasts';

/** An open page keeps no more; older ones are a request away. */
const MAX_SHOWN = 200;
const PAGE_SIZE = 50;

/** Newest first, but for a status that a later one has replaced. */
export const notifications = signal<Notification[]>([]);
export const unread = signal(0);
/** The events of the stream of all officials; the others concern the user. */
const OF_OFFICIALS: Notification['type'][] = [
  'report.created',
  'report.overdue',
  'report.disputed',
  'report.answered',
  'report.question.expired',
];

/** Whether notifications about other officials' reports are left out. */
export const onlyOwn = signal(false);
/** Where older ones begin, if there are any. */
export const older = signal<string | undefined>();

/** The position up to which `unread` counts. */
let countedTo = '';
/** The events that arrived while a page of the list was being fetched, and may not be on it. */
let arrivedMeanwhile: Arrival[] | undefined;

type Arrival = { notification: Notification; id: string };

export async function loadNotifications(): Promise<void> {
  const arrivals: Arrival[] = (arrivedMeanwhile = []);
  const page = await must(notificationService.GET('/notifications', { params: { query: { limit: PAGE_SIZE } } }));
  batch(() => {
    notifications.value = inOrder(page.notifications);
    older.value = page.next_cursor;
    onlyOwn.value = page.only_own;
    setUnread(page.unread_count, page.last_event_id);
    for (const arrival of arrivals) add(arrival);
  });
  if (arrivedMeanwhile === arrivals) arrivedMeanwhile = undefined;
  startAt(page.last_event_id);
}

function setUnread(unreadCount: number, upTo: string): void {
  unread.value = unreadCount;
  countedTo = upTo;
}

export async function loadOlder(): Promise<void> {
  const cursor = older.value;
  if (!cursor) return;
  const page = await must(notificationService.GET('/notifications', { params: { query: { limit: PAGE_SIZE, cursor } } }));
  if (older.value !== cursor) return; // pressed twice, or the list was loaded again
  notifications.value = inOrder([...notifications.value, ...page.notifications]);
  older.value = notifications.value.length < MAX_SHOWN ? page.next_cursor : undefined;
}

export async function mark(ids: string[], read: boolean): Promise<void> {
  const marked = await Promise.all(
    ids.map((id) => must(notificationService.PATCH('/notifications/{id}', { params: { path: { id } }, body: { read } }))),
  );
  const byId = new Map(marked.map((n) => [n.id, n]));
  const changed = notifications.value.filter((n) => byId.has(n.id) && n.read !== read).length;
  batch(() => {
    notifications.value = notifications.value.map((n) => byId.get(n.id) ?? n);
    unread.value += read ? -changed : changed;
  });
  announceChange('notifications');
}

/** Marks a report's notifications as read, once it was looked at. */
export async function markReport(reportId: string): Promise<void> {
  const ids = notifications.value.filter((n) => n.report_id === reportId && !n.read).map((n) => n.id);
  if (ids.length > 0) await mark(ids, true);
}

export async function markAll(): Promise<void> {
  // Notifications after those that are shown stay unread.
  const body = countedTo ? { last_event_id: countedTo } : {};
  await must(notificationService.POST('/notifications/read-all', { body }));
  await loadNotifications();
  announceChange('notifications');
}

/** Sets whether new reports of the city concern the official, on all devices. */
export async function setOnlyOwn(only: boolean): Promise<void> {
  await must(notificationService.PUT('/notifications/scope', { body: { only_own: only } }));
  await loadNotifications();
  announceChange('notifications');
}

/** A status may come after one that has replaced it: the workers of a queue do not wait for each other. */
const replaces = (later: Notification, n: Notification) =>
  later.type === 'report.status.updated' &&
  n.type === later.type &&
  n.report_id === later.report_id &&
  later.report_version > n.report_version;

/** The list with one more, which comes first, or behind what has replaced it. */
function withOneMore(list: Notification[], n: Notification): Notification[] {
  const place = list.findLastIndex((other) => replaces(other, n)) + 1;
  return [...list.slice(0, place), n, ...list.slice(place)];
}

/** The list as it would be, had each come while the page was open. */
const inOrder = (list: Notification[]) => list.reduceRight(withOneMore, [] as Notification[]);

/** Adds a notification unless it is shown already, and counts it unless it was counted. */
function add({ notification, id }: Arrival): boolean {
  const concerns = !onlyOwn.value || !OF_OFFICIALS.includes(notification.type);
  if (isAhead(id, countedTo)) {
    if (concerns) unread.value++;
    countedTo = furthest(id, countedTo);
  }
  if (!concerns) return false;
  if (notifications.value.some((n) => n.id === notification.id)) return false;
  notifications.value = withOneMore(notifications.value, notification).slice(0, MAX_SHOWN);
  if (notifications.value.length === MAX_SHOWN) older.value = undefined;
  return true;
}

function receive(arrival: Arrival): void {
  arrivedMeanwhile?.push(arrival);
  const { notification } = arrival;
  if (!add(arrival) || document.visibilityState !== 'visible') return;
  // Officials get one for every new report of the city; the bell counts them.
  if (notification.type === 'report.created') return;
  // The comment itself is in sight, and may be one's own.
  if (notification.type === 'report.commented' && route.value.path.join('/') === `reports/${notification.report_id}`) return;
  if (notifications.value.some((other) => replaces(other, notification))) return; // a later one replaces it
  toast(`${notification.report_title}: ${describe(notification)}`, href(`reports/${notification.report_id}`));
}

/** Of what is between officials and a reporter alone, so that the feed does not have it. */
const OF_DIALOGUE: Notification['type'][] = [
  'report.question.asked',
  'report.question.reminded',
  'report.answered',
  'report.question.expired',
];

/** Calls then with each question about a report, answer to one, or end of one, until the returned function is called. */
export function watchDialogue(reportId: string, then: () => void): () => void {
  let known: string | undefined;
  return notifications.subscribe((all) => {
    const latest = all.find(({ report_id, type }) => report_id === reportId && OF_DIALOGUE.includes(type))?.id ?? '';
    if (known !== undefined && known !== latest) then();
    known = latest;
  });
}

/** Keeps the list current. */
export function subscribeToNotifications(): void {
  onStream('notifications', ({ type, data, id }) => {
    if (type === 'notification') return receive({ notification: data as Notification, id });
    if (type === 'reset') return void loadNotifications();
    if (type === 'progress') return; // of photos, see photos/stages.ts
    const ready = data as { unread_count: number; last_event_id: string };
    setUnread(ready.unread_count, ready.last_event_id);
  });
  // Words that officials have taken from a report are not shown on, either.
  watchFeed({
    onEvents(events) {
      const moderated = events.filter(({ type }) => type === 'report.moderated').map(({ report_id }) => report_id);
      if (notifications.value.some((n) => moderated.includes(n.report_id))) void loadNotifications();
    },
    onGap() {},
  });
  onChange((what) => {
    if (what === 'notifications') void loadNotifications();
  });
}
