/** Reports of others that the user follows, kept in this browser alone. */
import type { FeedEvent } from '../api/client';
import { describe } from '../ui/describe';
import { href } from '../ui/router';
import { watchFeed } from './feed';
import { userData } from './storage';
import { toast } from './toasts';

/** My reports fetches each of them. */
const MAX_FOLLOWED = 200;

export const followed = userData<string[]>('followed', () => []);

export function follow(id: string, on: boolean): void {
  const others = followed.value.filter((other) => other !== id);
  followed.value = on ? [id, ...others].slice(0, MAX_FOLLOWED) : others;
}

/** Announces changes of status of followed reports while the page is visible. */
export function announceFollowed(): void {
  const onEvents = (events: FeedEvent[]) => {
    if (document.visibilityState !== 'visible') return;
    for (const event of events) {
      if (event.type !== 'report.status.updated' || !followed.value.includes(event.report_id)) continue;
      toast(`${event.report_title}: ${describe(event)}`, href(`reports/${event.report_id}`));
    }
  };
  watchFeed({ onEvents, onGap: () => {} });
}
