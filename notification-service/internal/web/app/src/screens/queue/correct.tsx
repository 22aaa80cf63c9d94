import { useRef, useState } from 'preact/hooks';

import type { Category, Task } from '../../api/client';
import { t } from '../../lang/queue';
import { categories } from '../../state/categories';
import { correctReport } from '../../state/work';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { PlaceFields, type Position } from './place';

interface Props {
  task: Task;
  onTask(task: Task): void;
  onClose(): void;
}

/**
 * Puts a report into another category or to another place. Enter in the list of
 * categories is enough for what is needed most: the reason is filled in.
 */
export function CorrectDialog({ task, onTask, onClose }: Props) {
  const [category, setCategory] = useState(task.category_id);
  const [address, setAddress] = useState(task.address);
  const [position, setPosition] = useState<Position>();
  const [reason, setReason] = useState(t('correct.reason.usual'));
  const [mapped, setMapped] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const form = useRef<HTMLFormElement>(null);
  const { latitude, longitude } = task;
  const start = latitude !== undefined && longitude !== undefined ? { latitude, longitude } : undefined;
  const changed = category !== task.category_id || position !== undefined || address.trim() !== task.address;
  const usable = ({ id, accepts_reports, retired }: Category) => (accepts_reports && !retired) || id === task.category_id;
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy || !changed) return;
    setBusy(true);
    try {
      onTask(
        await correctReport(task, {
          ...(category !== task.category_id && { category_id: category }),
          ...position,
          ...(address.trim() !== task.address && { address: address.trim() }),
          reason: reason.trim(),
        }),
      );
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <Modal title={t('correct')} onClose={onClose}>
      <form class="stack" ref={form} onSubmit={submit} aria-busy={busy}>
        <p class="quiet">{t('correct.hint')}</p>
        <label class="field">
          <span>{t('correct.category')}</span>
          <select
            data-first
            value={category}
            onChange={(event) => setCategory(Number(event.currentTarget.value))}
            onKeyDown={(event) => {
              if (event.key !== 'Enter') return;
              event.preventDefault();
              form.current?.requestSubmit();
            }}
          >
            {categories.value.filter(usable).map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <details onToggle={(event) => event.currentTarget.open && setMapped(true)}>
          <summary>{t('correct.place')}</summary>
          <div class="stack">
            {mapped && <PlaceFields address={address} position={position} start={start} onAddress={setAddress} onPosition={setPosition} />}
          </div>
        </details>
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
