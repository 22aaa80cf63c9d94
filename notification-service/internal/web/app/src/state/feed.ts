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

/** Events under way at the last sign of life may have been lost with the connection. */
const ON_ITS_WAY_MS = 2_000;

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
  // The first list was fetched after the page began.
  let heardAt = performance.timeOrigin - ON_ITS_WAY_MS;
  onStream('feed', ({ type, data }) => {
    const awayMs = Date.now() - heardAt;
    heardAt = Date.now() - ON_ITS_WAY_MS;
    if (type === 'notification') events(data as FeedEvent);
    // Where nothing has happened for longer, nothing was missed.
    else if (type === 'reset' || !((data as { quiet_ms?: number }).quiet_ms! > awayMs)) gap();
  });
}

/** The fields of a report that events change. */
type Changing = Pick<Report, 'id' | 'title' | 'version' | 'status' | 'transitions' | 'score' | 'updated_at'> &
  Partial<Pick<Report, 'photos'>>;

/** Whether an event says that a report was hidden or withdrawn, which is to be shown to nobody. */
export const hides = ({ type, action }: FeedEvent): boolean =>
  type === 'report.moderated' && (action === 'hidden' || action === 'withdrawn');

/** The report after events; the very same one if they change nothing. */
export function applyEvents<T extends Changing>(report: T, events: FeedEvent[]): T {
  return events.reduce<T>((before, event) => {
    if (event.report_id !== before.id || event.report_version <= before.version) return before;
    const status = event.status ?? before.status;
    return {
      ...before,
      version: event.report_version,
      title: event.action === 'redacted' || event.type === 'report.corrected' ? event.report_title : before.title,
      status,
      // An event does not say where the new status leads; the report does, once it is fetched.
      transitions: status === before.status ? before.transitions : [],
      score: event.score ?? before.score,
      ...(before.photos && event.photo_id && !before.photos.includes(event.photo_id) && { photos: [...before.photos, event.photo_id] }),
      updated_at: event.happened_at,
    };
  }, report);
}
