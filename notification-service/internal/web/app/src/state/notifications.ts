/** What the user was told, and what of it is unread. */
import { signal } from '@preact/signals';

import { must, notificationService, type Notification } from '../api/client';
import { describe } from '../ui/describe';
import { href } from '../ui/router';
import { onChange, onStream, startAfter, tellOtherTabs } from '../live/live';
import { toast } from './toasts';

/** An open page holds no more; older ones are a request away. */
const MOST = 200;
const PAGE = 50;

/** Newest first. */
export const notifications = signal<Notification[]>([]);
export const unread = signal(0);
/** Where older ones begin, if there are any. */
export const older = signal<string | undefined>();

/** Up to where the list is complete: what came later stays unread. */
let position: string | undefined;

export async function loadNotifications(): Promise<void> {
  const page = await must(notificationService.GET('/notifications', { params: { query: { limit: PAGE } } }));
  notifications.value = page.notifications;
  unread.value = page.unread_count;
  older.value = page.next_cursor;
  position = page.last_event_id;
  startAfter(page.last_event_id);
}

export async function loadOlder(): Promise<void> {
  const cursor = older.value;
  if (!cursor) return;
  const page = await must(notificationService.GET('/notifications', { params: { query: { limit: PAGE, cursor } } }));
  notifications.value = [...notifications.value, ...page.notifications];
  older.value = notifications.value.length < MOST ? page.next_cursor : undefined;
}

export async function mark(ids: string[], read: boolean): Promise<void> {
  const marked = await Promise.all(
    ids.map((id) => must(notificationService.PATCH('/notifications/{id}', { params: { path: { id } }, body: { read } }))),
  );
  const byId = new Map(marked.map((n) => [n.id, n]));
  notifications.value = notifications.value.map((n) => byId.get(n.id) ?? n);
  await recount();
}

/** Marks a report's notifications as read, once it was looked at. */
export async function markReport(reportId: string): Promise<void> {
  const ids = notifications.value.filter((n) => n.report_id === reportId && !n.read).map((n) => n.id);
  if (ids.length > 0) await mark(ids, true);
}

export async function markAll(): Promise<void> {
  const body = position ? { last_event_id: position } : {};
  const left = await must(notificationService.POST('/notifications/read-all', { body }));
  unread.value = left.unread_count;
  await loadNotifications();
  tellOtherTabs('notifications');
}

async function recount(): Promise<void> {
  unread.value = (await must(notificationService.GET('/notifications/unread-count'))).unread_count;
  tellOtherTabs('notifications');
}

function receive(notification: Notification, id: string): void {
  position = id;
  // Between two leading tabs, an event may come by both ways.
  if (notifications.value.some((n) => n.id === notification.id)) return;
  notifications.value = [notification, ...notifications.value].slice(0, MOST);
  unread.value++;
  if (document.visibilityState !== 'visible') return;
  toast(`${notification.report_title}: ${describe(notification)}`, href(`reports/${notification.report_id}`));
}

/** Keeps the list current. */
export function followNotifications(): void {
  onStream('mine', ({ type, data, id }) => {
    if (type === 'notification') receive(data as Notification, id);
    else if (type === 'reset') void loadNotifications();
    else unread.value = (data as { unread_count: number }).unread_count;
  });
  onChange((what) => {
    if (what === 'notifications') void loadNotifications();
  });
}
