import { useState } from 'preact/hooks';

import { language, t } from '../../../lang/console';
import { Acts } from '../acts';

interface Props {
  /** Dates such as 2026-12-25. */
  days: string[];
  onChange(days: string[]): void;
}

/** The dates on which the city does not work, in their order. */
export function Holidays({ days, onChange }: Props) {
  const [day, setDay] = useState('');
  const add = () => {
    if (!day) return;
    onChange([...new Set([...days, day])].sort());
    setDay('');
  };
  return (
    <section class="panel stack" aria-labelledby="holidays">
      <h2 id="holidays">{t('calendar.holidays')}</h2>
      {days.length === 0 && <p class="quiet">{t('calendar.no-holidays')}</p>}
      <ul class="rows">
        {days.map((each) => (
          <li key={each}>
            <time dateTime={each}>{nameOf(each)}</time>
            <Acts>
              <button
                type="button"
                class="danger-quiet"
                aria-label={t('calendar.remove-holiday', { day: nameOf(each) })}
                onClick={() => onChange(days.filter((other) => other !== each))}
              >
                {t('calendar.remove')}
              </button>
            </Acts>
          </li>
        ))}
      </ul>
      <Acts>
        <div class="bar">
          <label class="field">
            <span>{t('calendar.holiday')}</span>
            <input
              type="date"
              value={day}
              onInput={(event) => setDay(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key !== 'Enter') return;
                event.preventDefault(); // it would save all
                add();
              }}
            />
          </label>
          <button type="button" onClick={add}>
            {t('calendar.add-holiday')}
          </button>
        </div>
      </Acts>
    </section>
  );
}

/** A date as the reader writes it, with its weekday. */
function nameOf(day: string): string {
  return new Intl.DateTimeFormat(language.value, { dateStyle: 'full', timeZone: 'UTC' }).format(new Date(`${day}T00:00Z`));
}
