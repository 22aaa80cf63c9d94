/** The photos of the report that is shown. */
import { signal } from '@preact/signals';

import { must, reportService, type FeedEvent, type Photo } from '../api/client';
import { watchFeed } from '../state/feed';
import { notifications } from '../state/notifications';
import { outgoing } from './uploads';

/** How often photos are asked for whose verdict no event told. */
const LOOK_MS = 3_000;

export function createPhotos(report: string) {
  const photos = signal<Photo[]>([]);
  const error = signal<unknown>();

  const load = async () => {
    try {
      photos.value = (await must(reportService.GET('/reports/{id}/photos', { params: { path: { id: report } } }))).photos;
      error.value = undefined;
    } catch (failure) {
      error.value = failure;
    }
  };

  const remove = async (photo: Photo) => {
    try {
      await must(reportService.DELETE('/reports/{id}/photos/{photo_id}', { params: { path: { id: report, photo_id: photo.id } } }));
      photos.value = photos.value.filter(({ id }) => id !== photo.id);
    } catch (failure) {
      error.value = failure;
    }
  };

  /** Shows a photo that a firm has added. */
  const show = async (photo: Photo) => {
    try {
      const params = { path: { id: report, photo_id: photo.id } };
      photos.value = (await must(reportService.POST('/reports/{id}/photos/{photo_id}/show', { params }))).photos;
    } catch (failure) {
      error.value = failure;
    }
  };

  /** Keeps it current until the result is called. */
  const watch = () => {
    const checking = () => photos.value.some(({ state }) => state === 'checking');
    let waiting = -1;
    // A photo that is no longer outgoing has arrived.
    const endOutgoing = outgoing.subscribe((all) => {
      const count = all.filter((one) => one.report === report).length;
      if (waiting < 0 || count < waiting) void load();
      waiting = count;
    });
    const endFeed = watchFeed({
      onEvents: (events: FeedEvent[]) => events.some((e) => e.report_id === report && e.type === 'report.photo.ready') && void load(),
      onGap: () => void load(),
    });
    // A refusal comes with the user's notifications, which the feed does not show.
    const endNotifications = notifications.subscribe((all) => {
      if (checking() && all.some((n) => n.report_id === report && n.type === 'report.photo.refused')) void load();
    });
    const timer = setInterval(() => checking() && void load(), LOOK_MS);
    return () => {
      endOutgoing();
      endFeed();
      endNotifications();
      clearInterval(timer);
    };
  };

  return { photos, error, load, remove, show, watch };
}
