import { useEffect, useState } from 'preact/hooks';

import { must, notificationService, type DigestSettings } from '../../api/client';
import { t } from '../../lang/settings';
import { toast } from '../../state/toasts';
import { Fault } from '../../ui/problem';
import { Skeleton } from '../../ui/skeleton';
import { weekdayName } from '../../ui/time';

const FREQUENCIES: DigestSettings['frequency'][] = ['off', 'daily', 'weekly'];
const WEEKDAYS: NonNullable<DigestSettings['weekday']>[] = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'];
const MORNING = '07:00';

/** How often the reader wants one mail about all that is new, and when. */
export function Summary({ zone }: { zone: string }) {
  const [wanted, setWanted] = useState<DigestSettings>();
  const [error, setError] = useState<unknown>();
  const load = () =>
    must(notificationService.GET('/me/digest')).then((found) => {
      setWanted(found);
      setError(undefined);
    }, setError);
  useEffect(() => void load(), [zone]);
  if (!wanted) return error ? <Fault error={error} retry={load} /> : <Skeleton />;

  const { frequency, weekday = 'monday', at = MORNING } = wanted;
  const submit = async (event: Event) => {
    event.preventDefault();
    const body = { frequency, ...(frequency !== 'off' && { at }), ...(frequency === 'weekly' && { weekday }) };
    try {
      setWanted(await must(notificationService.PUT('/me/digest', { body })));
      setError(undefined);
      toast(t('settings.saved'));
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <form class="panel stack" onSubmit={submit} aria-labelledby="summary">
      <h2 id="summary">{t('settings.digest')}</h2>
      <p class="quiet">{t('settings.digest.hint')}</p>
      <fieldset class="choices">
        <legend>{t('settings.digest.how-often')}</legend>
        {FREQUENCIES.map((each) => (
          <label key={each} class="chip">
            <input type="radio" name="frequency" checked={each === frequency} onChange={() => setWanted({ ...wanted, frequency: each })} />
            <span>{t(`settings.digest.${each}`)}</span>
          </label>
        ))}
      </fieldset>
      {frequency === 'weekly' && (
        <label class="field">
          <span>{t('settings.weekday')}</span>
          <select value={weekday} onChange={(event) => setWanted({ ...wanted, weekday: event.currentTarget.value as typeof weekday })}>
            {WEEKDAYS.map((day, i) => (
              <option key={day} value={day}>
                {weekdayName(i)}
              </option>
            ))}
          </select>
        </label>
      )}
      {frequency !== 'off' && (
        <label class="field">
          <span>{t('settings.at', { zone })}</span>
          <input type="time" required value={at} onInput={(event) => setWanted({ ...wanted, at: event.currentTarget.value })} />
        </label>
      )}
      <Fault error={error} />
      <div class="bar">
        <button class="primary">{t('settings.save')}</button>
      </div>
    </form>
  );
}
