import { useRef, useState } from 'preact/hooks';

import type { Category, Correction, Task } from '../../api/client';
import { t } from '../../lang/queue';
import { categories } from '../../state/categories';
import { correctReport } from '../../state/work';
import { useAct } from '../../ui/act';
import { Choice } from '../../ui/field';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { AnotherPlace, useAnotherPlace } from '../../map/another-place';

interface Props {
  task: Task;
  /** Called with the report as it is then; without it if it went to another department. */
  onCorrected(task: Task | undefined): void;
  onClose(): void;
}

/**
 * Puts a report into another category or to another place. Enter in the list of
 * categories is enough for what is needed most: the reason is filled in.
 */
export function CorrectDialog({ task, onCorrected, onClose }: Props) {
  const [category, setCategory] = useState(task.category_id);
  const place = useAnotherPlace(task);
  const [reason, setReason] = useState(t('correct.reason.usual'));
  const { busy, error, submits } = useAct();
  const form = useRef<HTMLFormElement>(null);
  const change: Correction = { ...(category !== task.category_id && { category_id: category }), ...place.change };
  const changed = Object.keys(change).length > 0;
  const usable = ({ id, accepts_reports, retired }: Category) => (accepts_reports && !retired) || id === task.category_id;
  const submit = submits(async () => {
    if (!changed) return;
    const corrected = await correctReport(task, { ...change, reason: reason.trim() });
    onClose();
    onCorrected(corrected);
  });
  return (
    <Modal title={t('correct')} onClose={onClose}>
      <form class="stack" ref={form} onSubmit={submit} aria-busy={busy}>
        <p class="quiet">{t('correct.hint')}</p>
        <Choice
          label={t('correct.category')}
          data-first
          value={category}
          options={categories.value.filter(usable).map(({ id, name }) => [id, name])}
          onValue={(id) => setCategory(Number(id))}
          onKeyDown={(event) => {
            if (event.key !== 'Enter') return;
            event.preventDefault();
            form.current?.requestSubmit();
          }}
        />
        <AnotherPlace title={t('correct.place')} of={place} />
        <label class="field">
          <span>{t('reason')}</span>
          <small>{t('correct.reason.hint')}</small>
          <input required maxLength={1000} pattern=".*\S.*" value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        </label>
        <Fault error={error} />
        <button class="primary" disabled={!changed}>
          {t('correct.do')}
        </button>
      </form>
    </Modal>
  );
}
