/** The public feed: what happens to any report, for whatever shows reports. */
import type { FeedEvent, Report } from '../api/client';
import { gather, soon } from '../live/batch';
import { onStream } from '../live/live';

interface Watcher {
  /** Events in the order they came. */
  onEvents(events: FeedEvent[]): void;
  /** The feed has no history: after a gap, what is shown is fetched anew. */
  onGap(): void;
}

/** Within how long pages fetch anew after a gap that they all had. */
const SPREAD_MS = 500;

const watchers = new Set<Watcher>();

/** Tells watcher of all that happens until the returned function is called. */
export function watchFeed(watcher: Watcher): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export function followFeed(): void {
  const events = gather<FeedEvent>((events) => {
    for (const watcher of watchers) watcher.onEvents(events);
  });
  const gap = soon(() => {
    for (const watcher of watchers) watcher.onGap();
  }, SPREAD_MS);
  onStream('feed', ({ type, data }) => {
    if (type === 'notification') events(data as FeedEvent);
    else gap();
  });
}

/** The report after events; the very same one if they change nothing. */
export function applied(report: Report, events: FeedEvent[]): Report {
  return events.reduce((now, event) => {
    if (event.report_id !== now.id || event.report_version <= now.version) return now;
    const status = event.status ?? now.status;
    return {
      ...now,
      version: event.report_version,
      status,
      // An event does not say where the new status leads; the report does, once it is fetched.
      transitions: status === now.status ? now.transitions : [],
      score: event.score ?? now.score,
      updated_at: event.happened_at,
    };
  }, report);
}
