/** What the user was told, and what of it is unread. */
import { batch, signal } from '@preact/signals';

import { must, notificationService, type Notification } from '../api/client';
import { describe } from '../ui/describe';
import { href } from '../ui/router';
import { onChange, onStream, startAfter, tellOtherTabs } from '../live/live';
import { ahead, furthest } from '../live/position';
import { toast } from './toasts';

/** An open page holds no more; older ones are a request away. */
const MOST = 200;
const PAGE = 50;

/** Newest first. */
export const notifications = signal<Notification[]>([]);
export const unread = signal(0);
/** Where older ones begin, if there are any. */
export const older = signal<string | undefined>();

/** Up to where the unread are counted. */
let counted = '';
/** What came while a page of the list was on its way, and may not be on it. */
let meanwhile: Arrival[] | undefined;

type Arrival = { notification: Notification; id: string };

export async function loadNotifications(): Promise<void> {
  const arrivals: Arrival[] = (meanwhile = []);
  const page = await must(notificationService.GET('/notifications', { params: { query: { limit: PAGE } } }));
  batch(() => {
    notifications.value = page.notifications;
    older.value = page.next_cursor;
    count(page.unread_count, page.last_event_id);
    for (const arrival of arrivals) take(arrival);
  });
  if (meanwhile === arrivals) meanwhile = undefined;
  startAfter(page.last_event_id);
}

function count(unreadCount: number, upTo: string): void {
  unread.value = unreadCount;
  counted = upTo;
}

export async function loadOlder(): Promise<void> {
  const cursor = older.value;
  if (!cursor) return;
  const page = await must(notificationService.GET('/notifications', { params: { query: { limit: PAGE, cursor } } }));
  if (older.value !== cursor) return; // pressed twice, or the list was loaded anew
  notifications.value = [...notifications.value, ...page.notifications];
  older.value = notifications.value.length < MOST ? page.next_cursor : undefined;
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
  tellOtherTabs('notifications');
}

/** Marks a report's notifications as read, once it was looked at. */
export async function markReport(reportId: string): Promise<void> {
  const ids = notifications.value.filter((n) => n.report_id === reportId && !n.read).map((n) => n.id);
  if (ids.length > 0) await mark(ids, true);
}

export async function markAll(): Promise<void> {
  // What comes after what is shown stays unread.
  const body = counted ? { last_event_id: counted } : {};
  await must(notificationService.POST('/notifications/read-all', { body }));
  await loadNotifications();
  tellOtherTabs('notifications');
}

/** Adds what is new; what was on its way twice, or counted before, is no more for that. */
function take({ notification, id }: Arrival): boolean {
  if (ahead(id, counted)) {
    unread.value++;
    counted = furthest(id, counted);
  }
  if (notifications.value.some((n) => n.id === notification.id)) return false;
  notifications.value = [notification, ...notifications.value].slice(0, MOST);
  if (notifications.value.length === MOST) older.value = undefined;
  return true;
}

function receive(arrival: Arrival): void {
  meanwhile?.push(arrival);
  const { notification } = arrival;
  if (!take(arrival) || document.visibilityState !== 'visible') return;
  toast(`${notification.report_title}: ${describe(notification)}`, href(`reports/${notification.report_id}`));
}

/** Keeps the list current. */
export function followNotifications(): void {
  onStream('mine', ({ type, data, id }) => {
    if (type === 'notification') return receive({ notification: data as Notification, id });
    if (type === 'reset') return void loadNotifications();
    const ready = data as { unread_count: number; last_event_id: string };
    count(ready.unread_count, ready.last_event_id);
  });
  onChange((what) => {
    if (what === 'notifications') void loadNotifications();
  });
}
