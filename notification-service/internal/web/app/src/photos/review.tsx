import { useState } from 'preact/hooks';

import { must, reportService, type Photo } from '../api/client';
import { t, tn } from '../lang/queue';
import { Undecided, useUndecided } from '../screens/queue/undecided';
import { href } from '../ui/router';
import { Time } from '../ui/time';
import { Redact } from './redact';

const MOST = 50;

const held = async () => (await must(reportService.GET('/reports/queue/photos', { params: { query: { limit: MOST } } }))).photos;

/** The photos that nobody sees until an official has decided, the oldest first. */
export function HeldPhotos() {
  const found = useUndecided(held, 'held_photos');
  const { decide, refresh } = found;
  const [redacting, setRedacting] = useState<Photo>();
  const params = ({ report_id, id }: Photo) => ({ params: { path: { id: report_id, photo_id: id } } });
  return (
    <Undecided of={found} count={(many) => tn('held', many)} none={t('held.none')}>
      <ul class="thumbnails held">
        {found.value?.map((photo) => (
          <li key={photo.id} class="stack">
            <img src={`/photos/${photo.id}/1024.jpg`} alt={photo.alt || t('photos.photo')} loading="lazy" />
            {photo.alt && <p>{photo.alt}</p>}
            <p class="meta">
              <a href={href(`reports/${photo.report_id}`)}>{t('report')}</a>
              <Time at={photo.created_at} />
            </p>
            <div class="bar">
              <button
                type="button"
                class="primary"
                onClick={() => void decide(must(reportService.POST('/reports/{id}/photos/{photo_id}/show', params(photo))))}
              >
                {t('held.show')}
              </button>
              <button type="button" aria-haspopup="dialog" onClick={() => setRedacting(photo)}>
                {t('redact')}
              </button>
              <button
                type="button"
                class="danger-quiet"
                onClick={() => void decide(must(reportService.DELETE('/reports/{id}/photos/{photo_id}', params(photo))))}
              >
                {t('held.refuse')}
              </button>
            </div>
          </li>
        ))}
      </ul>
      {redacting && (
        <Redact
          photo={redacting}
          onClose={() => setRedacting(undefined)}
          onDone={() => {
            setRedacting(undefined);
            refresh();
          }}
        />
      )}
    </Undecided>
  );
}
