import { useState } from 'preact/hooks';

import { Failure, must, reportService, type Calendar, type Shift } from '../../../api/client';
import { t } from '../../../lang/console';
import { inUse } from '../../../state/categories';
import { createEdited, useEdited } from '../../../state/setting';
import { Field } from '../../../ui/field';
import { Fault } from '../../../ui/problem';
import { weekdayName } from '../../../ui/time';
import { Acts } from '../acts';
import { SettingForm } from '../setting-form';
import { Holidays } from './holidays';

const DAYS: Shift['day'][] = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'];
const OFFICE_HOURS = { from: '08:00', to: '16:00' };
const WORKDAYS = DAYS.slice(0, 5);
/** The end of a day, which a clock shows as its beginning. */
const DAY_END = '24:00';
const MIDNIGHT = '00:00';
/** A year of hours, as the server takes it. */
const MAX_HOURS = 8784;

/** Whether it is the calendar with which every city begins: it counts nights and Sundays, in no city's time. */
export const isFirst = ({ zone, shifts }: Calendar) =>
  zone === 'UTC' && shifts.length === DAYS.length && shifts.every(({ from, to }) => from === MIDNIGHT && to === DAY_END);
const here = Intl.DateTimeFormat().resolvedOptions().timeZone;

export const edited = createEdited<Calendar>(() => must(reportService.GET('/reports/calendar')));

/** When the city works, and how long it gives itself for reports of each category. All is saved together. */
export function CityCalendar() {
  const [tried, setTried] = useState(false);
  useEdited(edited);
  const calendar = edited.value.value;
  const error = edited.error.value;
  if (!calendar) return <Fault error={error} retry={() => void edited.load()} />;

  const { zone, shifts, targets } = calendar;
  const change = (part: Partial<Calendar>) => edited.set({ ...calendar, ...part });
  const setHours = (category: number, hours: number) => {
    const others = targets.filter(({ category_id }) => category_id !== category);
    change({ targets: Number.isNaN(hours) ? others : [...others, { category_id: category, hours }] });
  };
  // A signpost takes no reports; it may still have a target from before.
  const targeted = inUse.value.filter(
    ({ id, accepts_reports }) => accepts_reports || targets.some(({ category_id }) => category_id === id),
  );
  /** Gives all days on which the city works the hours of one of them. */
  const spread = (own: Span[]) => {
    const working = DAYS.filter((day) => shifts.some((shift) => shift.day === day));
    change({ shifts: working.flatMap((day) => own.map(({ from, to }) => ({ day, from, to }))) });
  };
  const wrong = DAYS.some((day) => faultOf(shifts.filter((shift) => shift.day === day)));
  const zoneRefused = error instanceof Failure && error.fault('/zone');
  return (
    <SettingForm
      edited={edited}
      put={(body) => must(reportService.PUT('/reports/calendar', { body }))}
      hint={t('calendar.hint')}
      save={t('calendar.save')}
      saved={t('calendar.saved')}
      explained={Boolean(zoneRefused)}
      ready={() => {
        setTried(true);
        return !wrong && shifts.length > 0;
      }}
    >
      {isFirst(calendar) && (
        <Acts>
          <p class="note">
            {t('calendar.first')}{' '}
            <button
              type="button"
              class="link"
              onClick={() => change({ zone: here, shifts: WORKDAYS.map((day) => ({ day, ...OFFICE_HOURS })) })}
            >
              {t('calendar.first.do', { ...OFFICE_HOURS, zone: here })}
            </button>
          </p>
        </Acts>
      )}
      <label class="field panel">
        <span>{t('calendar.zone')}</span>
        <input
          required
          list="zones"
          maxLength={64}
          autocomplete="off"
          value={zone}
          onInput={(event) => change({ zone: event.currentTarget.value.trim() })}
        />
        <datalist id="zones">
          {Intl.supportedValuesOf('timeZone').map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        {zoneRefused && (
          <small class="fault" role="alert">
            {t('calendar.zone.refused')}
          </small>
        )}
      </label>
      <section class="panel stack" aria-labelledby="hours">
        <h2 id="hours">{t('calendar.hours')}</h2>
        <p class="quiet">{t('calendar.hours.hint')}</p>
        {DAYS.map((day, i) => (
          <Day
            key={day}
            name={weekdayName(i)}
            shifts={shifts.filter((shift) => shift.day === day)}
            onChange={(own) =>
              change({ shifts: [...shifts.filter((shift) => shift.day !== day), ...own.map((span) => ({ ...span, day }))] })
            }
            onSpread={spread}
          />
        ))}
        {tried && shifts.length === 0 && (
          <p class="fault" role="alert">
            {t('calendar.never-works')}
          </p>
        )}
      </section>
      <Holidays days={calendar.holidays} onChange={(holidays) => change({ holidays })} />
      <section class="panel stack" aria-labelledby="targets">
        <h2 id="targets">{t('calendar.targets')}</h2>
        <p class="quiet">{t('calendar.targets.hint')}</p>
        {targeted.map(({ id, name }) => (
          <Field
            key={id}
            label={name}
            type="number"
            inputMode="numeric"
            min={1}
            max={MAX_HOURS}
            step={1}
            placeholder={t('calendar.no-target')}
            value={targets.find(({ category_id }) => category_id === id)?.hours ?? ''}
            onValue={(hours) => setHours(id, hours === '' ? NaN : Number(hours))}
          />
        ))}
      </section>
    </SettingForm>
  );
}

type Span = Pick<Shift, 'from' | 'to'>;

interface DayProps {
  name: string;
  shifts: Span[];
  onChange(shifts: Span[]): void;
  onSpread(shifts: Span[]): void;
}

/** The hours of one weekday; none is a day off. */
function Day({ name, shifts, onChange, onSpread }: DayProps) {
  const fault = faultOf(shifts);
  const put = (place: number, part: Partial<Span>) => onChange(shifts.map((span, i) => (i === place ? { ...span, ...part } : span)));
  return (
    <fieldset class="bare">
      <legend>{name}</legend>
      {shifts.length === 0 && <p class="quiet">{t('calendar.day-off')}</p>}
      {shifts.map(({ from, to }, i) => (
        <div key={i} class="bar span">
          <Field label={t('calendar.from')} type="time" required value={from} onValue={(from) => put(i, { from })} />
          <Field
            label={t('calendar.to')}
            type="time"
            required
            value={to === DAY_END ? MIDNIGHT : to}
            onValue={(value) => put(i, { to: value === MIDNIGHT ? DAY_END : value })}
          />
          <Acts>
            <button
              type="button"
              class="danger-quiet"
              aria-label={t('calendar.remove-hours', { day: name, from, to })}
              onClick={() => onChange(shifts.filter((_, other) => other !== i))}
            >
              {t('calendar.remove')}
            </button>
          </Acts>
        </div>
      ))}
      {fault && (
        <small class="fault" role="alert">
          {t(fault)}
        </small>
      )}
      <Acts>
        <p class="bar">
          <button
            type="button"
            class="link"
            aria-label={t('calendar.add-hours.to', { day: name })}
            onClick={() => onChange([...shifts, shifts.length === 0 ? OFFICE_HOURS : { from: '', to: '' }])}
          >
            {t('calendar.add-hours')}
          </button>
          {shifts.length > 0 && (
            <button type="button" class="link" aria-label={t('calendar.same-hours.as', { day: name })} onClick={() => onSpread(shifts)}>
              {t('calendar.same-hours')}
            </button>
          )}
        </p>
      </Acts>
    </fieldset>
  );
}

/** The fault of the hours of a day. The browser asks for what is not typed yet. */
function faultOf(shifts: Span[]) {
  const spans = shifts.filter(({ from, to }) => from && to).sort((a, b) => a.from.localeCompare(b.from));
  if (spans.some(({ from, to }) => to <= from)) return 'calendar.backwards';
  if (spans.some(({ from }, i) => i > 0 && from < spans[i - 1]!.to)) return 'calendar.overlap';
  return undefined;
}
