import { useEffect, useState } from 'preact/hooks';

import { must, notificationService, type DigestSettings } from '../../api/client';
import { t } from '../../lang/settings';
import { toast } from '../../state/toasts';
import { useAct } from '../../ui/act';
import { Choice, Field } from '../../ui/field';
import { Fault } from '../../ui/problem';
import { Skeleton } from '../../ui/skeleton';
import { weekdayName } from '../../ui/time';

const FREQUENCIES: DigestSettings['frequency'][] = ['off', 'daily', 'weekly'];
const WEEKDAYS: NonNullable<DigestSettings['weekday']>[] = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'];
const MORNING = '07:00';

/** How often the reader wants one mail about all that is new, and when. */
export function Summary({ zone }: { zone: string }) {
  const [wanted, setWanted] = useState<DigestSettings>();
  const { error, run, submits } = useAct();
  const load = () => run(() => must(notificationService.GET('/me/digest')).then(setWanted));
  useEffect(() => void load(), [zone]);
  if (!wanted) return error ? <Fault error={error} retry={load} /> : <Skeleton />;

  const { frequency, weekday = 'monday', at = MORNING } = wanted;
  const submit = submits(async () => {
    const body = { frequency, ...(frequency !== 'off' && { at }), ...(frequency === 'weekly' && { weekday }) };
    setWanted(await must(notificationService.PUT('/me/digest', { body })));
    toast(t('settings.saved'));
  });
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
        <Choice
          label={t('settings.weekday')}
          value={weekday}
          options={WEEKDAYS.map((day, i) => [day, weekdayName(i)])}
          onValue={(day) => setWanted({ ...wanted, weekday: day as typeof weekday })}
        />
      )}
      {frequency !== 'off' && (
        <Field label={t('settings.at', { zone })} type="time" required value={at} onValue={(at) => setWanted({ ...wanted, at })} />
      )}
      <Fault error={error} />
      <div class="bar">
        <button class="primary">{t('settings.save')}</button>
      </div>
    </form>
  );
}
