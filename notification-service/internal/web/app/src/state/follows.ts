/**
 * Reports of others that the user follows. The server keeps them, so that they
 * are the same on every device, and notifies of changes of status as of the
 * user's own reports.
 */
import { signal } from '@preact/signals';

import { must, notificationService } from '../api/client';
import { announceChange, onChange } from '../live/live';
import { userData } from './storage';

/** The latest first; absent until they are known. */
export const followed = signal<string[] | undefined>();

/** The keys under which earlier versions of the page kept data in this browser. */
const kept = userData<string[]>('followed', () => []);

let loading: Promise<void> | undefined;

/** Fetches them once, when a screen first shows them. */
export function loadFollowed(): Promise<void> {
  return (loading ??= load().catch((error: unknown) => {
    loading = undefined;
    throw error;
  }));
}

async function load(): Promise<void> {
  for (const id of kept.value.toReversed()) await put(id).catch(() => {}); // one that is too many is given up
  kept.value = [];
  const { follows } = await must(notificationService.GET('/me/follows'));
  followed.value = follows.map(({ report_id }) => report_id);
}

const put = (report_id: string) => must(notificationService.PUT('/me/follows/{report_id}', { params: { path: { report_id } } }));

export async function follow(report_id: string, on: boolean): Promise<void> {
  if (on) await put(report_id);
  else await must(notificationService.DELETE('/me/follows/{report_id}', { params: { path: { report_id } } }));
  if (followed.value) {
    const others = followed.value.filter((other) => other !== report_id);
    followed.value = on ? [report_id, ...others] : others;
  }
  announceChange('followed');
}

/** Keeps them as other tabs change them. */
export function shareFollowed(): void {
  onChange((what) => {
    if (what === 'followed' && loading) void load().catch(() => {});
  });
}
