import { useEffect, useState } from 'preact/hooks';

import { must, reportService, type Task } from '../../api/client';
import { t } from '../../lang/queue';
import { FirstPhoto, FirstPhotoOf } from '../../photos/first-photo';
import type { OpenWork } from '../../state/work';
import { Badge } from '../../ui/badge';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { href } from '../../ui/router';
import { Time } from '../../ui/time';
import { Picker } from './picker';

/** About so far away, in degrees, is where the original of a duplicate is looked for first. */
const NEAR = 0.005;
const MAX_FOUND = 20;
/** After a pause of this length the search begins. */
const TYPED_MS = 300;

/** Of what a report is a duplicate, what is one of it, and how that is changed. */
export function Duplicates({ task, open }: { task: Task; open: OpenWork }) {
  const [choosing, setChoosing] = useState(false);
  const [error, setError] = useState<unknown>();
  const duplicates = open.work.value?.duplicates ?? [];
  const link = (id: string) => href('queue', { status: 'all', report: id });
  return (
    <section class="stack" aria-labelledby="duplicates">
      <h3 id="duplicates">{t('work.duplicates')}</h3>
      {task.duplicate_of ? (
        <p class="bar">
          <a href={link(task.duplicate_of)}>{t('work.original')}</a>
          <button type="button" onClick={() => open.setDuplicate(undefined).then(() => setError(undefined), setError)}>
            {t('work.no-duplicate')}
          </button>
        </p>
      ) : (
        <p class="bar">
          {task.perhaps_of && (
            <>
              <a href={link(task.perhaps_of.id)}>{t('work.perhaps', { title: task.perhaps_of.title })}</a>
              <button type="button" onClick={() => open.setDuplicate(task.perhaps_of?.id).then(() => setError(undefined), setError)}>
                {t('work.merge')}
              </button>
            </>
          )}
          <button type="button" aria-haspopup="dialog" onClick={() => setChoosing(true)}>
            {t('work.duplicate')}
          </button>
        </p>
      )}
      <Fault error={error} />
      {duplicates.length > 0 && (
        <ul>
          {duplicates.map((id, i) => (
            <li key={id}>
              <FirstPhotoOf report={id} />
              <a href={link(id)}>{t('work.duplicate-number', { number: i + 1 })}</a>
            </li>
          ))}
        </ul>
      )}
      {choosing && <ChooseOriginal task={task} open={open} onClose={() => setChoosing(false)} />}
    </section>
  );
}

/** Looks for the original: nearby at first, then by what is typed. */
function ChooseOriginal({ task, open, onClose }: { task: Task; open: OpenWork; onClose(): void }) {
  const [typed, setTyped] = useState('');
  const [found, setFound] = useState<Task[]>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    let latest = true;
    const timer = setTimeout(
      () => {
        const { latitude, longitude } = task;
        const near =
          latitude !== undefined && longitude !== undefined
            ? { bbox: [longitude - NEAR, latitude - NEAR, longitude + NEAR, latitude + NEAR].join() }
            : { category: [task.category_id] };
        const query = { limit: MAX_FOUND, ...(typed ? { q: typed } : near) };
        must(reportService.GET('/reports/queue', { params: { query } })).then(
          ({ reports }) => latest && setFound(reports.filter(({ id, duplicate_of }) => id !== task.id && !duplicate_of)),
          (failure: unknown) => latest && setError(failure),
        );
      },
      typed ? TYPED_MS : 0,
    );
    return () => {
      latest = false;
      clearTimeout(timer);
    };
  }, [typed]);
  const choices = found?.map(({ id, title, status, address, created_at, photos }) => ({
    key: id,
    name: title,
    about: (
      <>
        <FirstPhoto photos={photos} /> <Badge status={status} /> {address} <Time at={created_at} />
      </>
    ),
    onChoose: () => void open.setDuplicate(id).then(onClose, setError),
  }));
  return (
    <Modal title={t('work.duplicate')} onClose={onClose}>
      <p class="quiet">{t('work.duplicate-hint')}</p>
      <Fault error={error} />
      <Picker label={t('search')} choices={choices ?? []} searching={!choices && !error} onType={setTyped} />
    </Modal>
  );
}
