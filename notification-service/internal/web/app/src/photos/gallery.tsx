import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState, type Dispatch, type StateUpdater } from 'preact/hooks';

import type { Photo, Report } from '../api/client';
import { t } from '../lang/i18n';
import { config } from '../state/config';
import { Icon } from '../ui/icons';
import { lazily } from '../ui/lazily';
import { Modal } from '../ui/modal';
import { Fault } from '../ui/problem';
import { createChoice, MAX_PHOTOS, ofReport } from './choice';
import { dropOutgoing, outgoing, type Outgoing } from './uploads';
import { createPhotos } from './photos';
import { Picker } from './picker';
import { STAGES, stages } from './stages';

// Officials alone redact, and rarely.
const Redact = lazily(async () => (await import('./redact')).Redact, true);

interface Props {
  report: Pick<Report, 'id' | 'mine' | 'withdrawn_at'>;
  /** Whether the photos alone are shown at first, and what can be done with them once it is asked for. */
  folded?: boolean;
  /** Rights of an official of the report: to add photos of the city's, or also to redact and remove those of residents. */
  rights?: 'work' | 'moderate' | undefined;
}

/** The photos of a report, and a way to add some for users who may. */
export function Gallery({ report, folded = false, rights }: Props) {
  const open = useMemo(() => createPhotos(report.id), [report.id]);
  const choice = useMemo(() => createChoice(ofReport(report.id)), [report.id]);
  useEffect(() => open.watch(), [open]);
  useEffect(() => choice.open(), [choice]);
  const [shown, show] = useState<number>();
  const [redacting, setRedacting] = useState<Photo>();
  const [unfolded, setUnfolded] = useState(!folded);
  const mayChange = !report.withdrawn_at && (report.mine || rights !== undefined);
  const changes = mayChange && unfolded;
  const photos = open.photos.value;
  const after = photos.filter(({ purpose }) => purpose === 'after');
  const before = photos.filter((photo) => !after.includes(photo));
  const ready = [...before, ...after].filter(({ state }) => state === 'ready' || state === 'held');
  const coming = outgoing.value.filter((upload) => upload.report === report.id);
  const free = changes && config.photos ? MAX_PHOTOS - coming.length - before.filter(({ state }) => state !== 'refused').length : 0;
  const toUnfold = mayChange && !unfolded && (photos.length > 0 || config.photos);
  const onTheirWay = coming.map((upload) => (
    <li key={upload.id}>
      <OnItsWay upload={upload} />
    </li>
  ));
  const list = (some: Photo[], more?: ComponentChildren) => (
    <ul class="thumbnails">
      {some.map((photo) => (
        <li key={photo.id}>
          <Thumbnail photo={photo} onOpen={() => show(ready.indexOf(photo))} />
          {ready.includes(photo) && changes && rights === 'moderate' && !report.mine && (
            <button
              type="button"
              class="link"
              aria-haspopup="dialog"
              onClick={() => setRedacting(photo)}
              aria-label={`${t('redact')}: ${photo.alt || t('photos.photo')}`}
            >
              {t('redact')}
            </button>
          )}
          {photo.state === 'held' && photo.official && rights && (
            <button type="button" class="link" onClick={() => void open.show(photo)}>
              {t('photos.show')}
            </button>
          )}
          {changes && (report.mine ? !photo.purpose : photo.official || rights === 'moderate') && (
            <button
              type="button"
              class="link"
              onClick={() => void open.remove(photo)}
              aria-label={t('photos.remove-one', { alt: photo.alt || t('photos.photo') })}
            >
              {t('photos.remove')}
            </button>
          )}
        </li>
      ))}
      {more}
    </ul>
  );
  if (photos.length + coming.length === 0 && free === 0 && !toUnfold && !open.error.value) return null;
  return (
    <section aria-labelledby="photos" class="photos stack">
      <h2 id="photos" class={folded ? 'hidden' : undefined}>
        {t('photos')}
      </h2>
      {after.length > 0 ? (
        <div class="before-after">
          <div>
            <h3>{t('photos.before')}</h3>
            {list(before, onTheirWay)}
          </div>
          <div>
            <h3>{t('photos.after')}</h3>
            {list(after)}
          </div>
        </div>
      ) : (
        photos.length + coming.length > 0 && list(photos, onTheirWay)
      )}
      {toUnfold && (
        <p>
          <button type="button" class="link" onClick={() => setUnfolded(true)}>
            {t(photos.length > 0 ? 'photos.edit' : 'photos.add')}
          </button>
        </p>
      )}
      {free > 0 && <Picker choice={choice} free={free} hint={false} />}
      {free > 0 && choice.list.value.length > 0 && (
        <button type="button" class="primary" onClick={() => void choice.send(report.id)}>
          {t('photos.send')}
        </button>
      )}
      <Fault error={open.error.value} retry={() => void open.load()} />
      {redacting && (
        <Redact
          photo={redacting}
          onClose={() => setRedacting(undefined)}
          onDone={() => {
            setRedacting(undefined);
            void open.load();
          }}
        />
      )}
      {shown !== undefined && ready[shown] && <Large photos={ready} at={shown} show={show} />}
    </section>
  );
}

function Thumbnail({ photo, onOpen }: { photo: Photo; onOpen(): void }) {
  if (photo.state === 'checking') {
    const stage = stages.value[photo.id];
    return (
      <div class="note stack">
        <p role="status">{t(stage ? `photos.stage.${stage}` : 'photos.checking')}</p>
        {stage && <progress max={100} value={STAGES[stage]} aria-label={t('photos.checking')} />}
      </div>
    );
  }
  if (photo.state === 'refused') {
    return <p class="note">{t('event.photo-refused', { reason: t(`photo-reason.${photo.reason ?? 'failed'}`) })}</p>;
  }
  return (
    <figure>
      <button type="button" class="bare" onClick={onOpen} aria-label={t('photos.open', { alt: photo.alt || t('photos.photo') })}>
        <img src={`/photos/${photo.id}/320.jpg`} alt="" width={photo.width} height={photo.height} loading="lazy" />
      </button>
      {photo.state === 'held' && <figcaption>{t('photos.held')}</figcaption>}
    </figure>
  );
}

function OnItsWay({ upload }: { upload: Outgoing }) {
  return (
    <figure>
      <img src={upload.preview} alt={upload.alt || t('photos.photo')} />
      <figcaption>
        {upload.error ? (
          <>
            <Fault error={upload.error} />
            <button type="button" class="link" onClick={() => dropOutgoing(upload.id)}>
              {t('photos.remove')}
            </button>
          </>
        ) : (
          <progress max={1} value={upload.progress} aria-label={t('photos.sending')} />
        )}
      </figcaption>
    </figure>
  );
}

/** How far a finger moves at least to turn to the next photo, in pixels. */
const SWIPE = 40;

/** One photo after another, by keys, buttons and fingers. */
function Large({ photos, at, show }: { photos: Photo[]; at: number; show: Dispatch<StateUpdater<number | undefined>> }) {
  const from = useRef(0);
  const photo = photos[at]!;
  // A key may come before the one before it has been drawn.
  const turn = (by: number) => show((now) => (now === undefined ? now : Math.min(Math.max(now + by, 0), photos.length - 1)));
  // Wherever the focus is: that of a button that leads no further is nowhere.
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'ArrowLeft') turn(-1);
      if (event.key === 'ArrowRight') turn(1);
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [photos.length]);
  return (
    <Modal title={t('photos.of', { n: String(at + 1), count: String(photos.length) })} onClose={() => show(undefined)}>
      <div
        class="large-photo"
        onPointerDown={(event) => (from.current = event.clientX)}
        onPointerUp={(event) => Math.abs(event.clientX - from.current) > SWIPE && turn(event.clientX < from.current ? 1 : -1)}
      >
        <img
          src={`/photos/${photo.id}/1024.jpg`}
          srcset={`/photos/${photo.id}/1024.jpg 1024w, /photos/${photo.id}/2048.jpg 2048w`}
          sizes="100vw"
          alt={photo.alt || t('photos.photo')}
          width={photo.width}
          height={photo.height}
          draggable={false}
        />
        {photo.alt && <p>{photo.alt}</p>}
        <div class="bar">
          <button type="button" data-first={at > 0} disabled={at === 0} onClick={() => turn(-1)}>
            <Icon name="back" /> {t('photos.previous')}
          </button>
          <button type="button" data-first={at === 0} disabled={at === photos.length - 1} onClick={() => turn(1)}>
            {t('photos.next')}
          </button>
        </div>
      </div>
    </Modal>
  );
}
