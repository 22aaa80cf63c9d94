import { useState } from 'preact/hooks';

import type { Correction, Report } from '../../api/client';
import { t } from '../../lang/report';
import { AnotherPlace, useAnotherPlace } from '../../map/another-place';
import { toast } from '../../state/toasts';
import { useAct } from '../../ui/act';
import { Field, Lines } from '../../ui/field';
import { Fault } from '../../ui/problem';

interface Props {
  report: Report;
  correct(change: Correction): Promise<void>;
  onClose(): void;
}

/** The words and the place of one's own report, while nobody works on it. */
export function CorrectForm({ report, correct, onClose }: Props) {
  const [title, setTitle] = useState(report.title);
  const [description, setDescription] = useState(report.description);
  const place = useAnotherPlace(report);
  const { busy, error, submits } = useAct();
  const change: Correction = {
    ...(title.trim() !== report.title && { title: title.trim() }),
    ...(description.trim() !== report.description && { description: description.trim() }),
    ...place.change,
  };
  const submit = submits(async () => {
    await correct(change);
    toast(t('correct-own.done'));
    onClose();
  });
  return (
    <form class="stack" onSubmit={submit} aria-busy={busy}>
      <p class="quiet">{t('correct-own.hint')}</p>
      <Field label={t('new.title')} data-first required maxLength={200} value={title} onValue={setTitle} />
      <Lines label={t('new.description')} rows={5} maxLength={4000} value={description} onValue={setDescription} />
      <AnotherPlace title={t('correct-own.place')} of={place} />
      <Fault error={error} />
      <button class="primary" disabled={busy || Object.keys(change).length === 0}>
        {t('correct-own.do')}
      </button>
    </form>
  );
}
