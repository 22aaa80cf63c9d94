import { useEffect, useRef, useState } from 'preact/hooks';

import type { Category, Task } from '../../api/client';
import { t } from '../../lang/queue';
import { addressAt } from '../../map/geocoder';
import { Map } from '../../map/map';
import { PlaceSearch } from '../../map/place-search';
import type { Plot } from '../../map/plot';
import { categories } from '../../state/categories';
import { canSearch, inCity } from '../../state/config';
import { correctReport } from '../../state/work';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';

interface Props {
  task: Task;
  onTask(task: Task): void;
  onClose(): void;
}

type Position = { latitude: number; longitude: number };

/**
 * Puts a report into another category or to another place. Enter in the list of
 * categories is enough for what is needed most: the reason is filled in.
 */
export function CorrectDialog({ task, onTask, onClose }: Props) {
  const [category, setCategory] = useState(task.category_id);
  const [address, setAddress] = useState(task.address);
  const [position, setPosition] = useState<Position>();
  const [reason, setReason] = useState(t('correct.reason.usual'));
  const [outside, setOutside] = useState(false);
  const [mapped, setMapped] = useState(false);
  const [mapless, setMapless] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const form = useRef<HTMLFormElement>(null);
  const plot = useRef<Plot | null>(null);
  /** What the report or the map called the place: it may be replaced, what is typed here may not. */
  const given = useRef(address);
  const latest = useRef<Position>(undefined);
  useEffect(() => () => void (plot.current = null), []);

  const pick = (picked: Position) => {
    setOutside(!inCity(picked));
    if (!inCity(picked)) return;
    latest.current = picked;
    setPosition(picked);
    const call = (found: string) =>
      setAddress((now) => {
        if (latest.current !== picked || now !== given.current) return now;
        given.current = found;
        return found;
      });
    const known = plot.current?.addressOf(picked).then(call);
    void Promise.all([addressAt(picked), known]).then(([found]) => found !== '' && call(found));
  };
  const ready = (made: Plot) => {
    plot.current = made;
    const { latitude, longitude } = task;
    if (latitude !== undefined && longitude !== undefined) made.moveTo({ latitude, longitude });
  };
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
            {mapped && canSearch(mapless) && (
              <PlaceSearch
                plot={plot}
                onFound={({ name, quarter, position: found, unknownNumber }) => {
                  plot.current?.moveTo(found);
                  const street = unknownNumber ? `${name} ${unknownNumber}` : name;
                  given.current = [street, quarter].filter((part) => part !== '').join(', ');
                  setAddress(given.current);
                  pick(found);
                  // The official wrote the number: the house below the pin does not take it away.
                  if (unknownNumber) given.current = '';
                }}
              />
            )}
            {mapped && (
              <Map
                label={t('map.pick')}
                chosen={position !== undefined}
                onCenter={pick}
                onReady={ready}
                onFailed={() => setMapless(true)}
              />
            )}
            {outside && (
              <p class="fault" role="status">
                {t('place.outside')}
              </p>
            )}
            <label class="field">
              <span>{t('correct.address')}</span>
              <input maxLength={300} value={address} onInput={(event) => setAddress(event.currentTarget.value)} />
            </label>
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
