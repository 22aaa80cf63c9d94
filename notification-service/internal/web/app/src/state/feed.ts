/** The public feed: every change of any report, for all that shows reports. */
import type { FeedEvent, Report } from '../api/client';
import { collect, debounce } from '../live/batch';
import { onStream } from '../live/live';

interface Watcher {
  /** Events in the order they came. */
  onEvents(events: FeedEvent[]): void;
  /** The feed has no history: after a gap, what is shown must be fetched again. */
  onGap(): void;
}

/** All open pages have the same gap; they fetch within this time, at random. */
const SPREAD_MS = 500;

const watchers = new Set<Watcher>();

/** Passes all events to watcher until the returned function is called. */
export function watchFeed(watcher: Watcher): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export function subscribeToFeed(): void {
  const events = collect<FeedEvent>((events) => {
    for (const watcher of watchers) watcher.onEvents(events);
  });
  const gap = debounce(() => {
    for (const watcher of watchers) watcher.onGap();
  }, SPREAD_MS);
  onStream('feed', ({ type, data }) => {
    if (type === 'notification') events(data as FeedEvent);
    else gap();
  });
}

/** The report after events; the very same one if they change nothing. */
export function applyEvents(report: Report, events: FeedEvent[]): Report {
  return events.reduce((before, event) => {
    if (event.report_id !== before.id || event.report_version <= before.version) return before;
    const status = event.status ?? before.status;
    return {
      ...before,
      version: event.report_version,
      status,
      // An event does not say where the new status leads; the report does, once it is fetched.
      transitions: status === before.status ? before.transitions : [],
      score: event.score ?? before.score,
      updated_at: event.happened_at,
    };
  }, report);
}
