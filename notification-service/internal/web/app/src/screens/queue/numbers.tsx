import { useEffect, useState } from 'preact/hooks';

import { must, reportService, type NumbersOverTime, type PeriodNumbers } from '../../api/client';
import { language, number, t } from '../../lang/queue';
import { categories } from '../../state/categories';
import { areaName, departments } from '../../state/desk';
import { queryOf, type QueueFilters } from '../../state/filters';
import { Fault } from '../../ui/problem';
import { route, setQuery } from '../../ui/router';
import { Skeleton } from '../../ui/skeleton';
import { FilterBar } from './filters';

const INTERVALS = ['day', 'week', 'month'] as const;
type Interval = (typeof INTERVALS)[number];

type Sums = Pick<PeriodNumbers, (typeof SUMS)[number] | (typeof VERDICTS)[number]> & { median_seconds?: number; open_at_end?: number };
const SUMS = ['filed', 'resolved', 'rejected'] as const;
const VERDICTS = ['confirmed', 'disputed', 'silent'] as const;

/** The numbers of filed, resolved and rejected reports, by period, category and department, and the time it took. */
export function Numbers({ filters }: { filters: QueueFilters }) {
  const interval = INTERVALS.find((each) => each === route.value.query.get('interval')) ?? 'month';
  const [found, setFound] = useState<NumbersOverTime>();
  const [error, setError] = useState<unknown>();
  const asked = JSON.stringify([filters, interval]);
  const read = () => {
    let latest = true;
    must(reportService.GET('/reports/numbers', { params: { query: { ...queryOf(filters), interval } } })).then(
      (answer) => {
        if (!latest) return;
        setFound(answer);
        setError(undefined);
      },
      (failure: unknown) => latest && setError(failure),
    );
    return () => {
      latest = false;
    };
  };
  useEffect(read, [asked]);

  const numbers = found?.numbers;
  const byDepartment = (found?.departments ?? []).map((each): [string, Sums] => [String(each.department_id ?? 0), each]);
  const byArea = (found?.areas ?? []).map((each): [string, Sums] => [each.area ?? '', each]);
  const nameOfArea = (code: string) => (code ? areaName(code) : t('numbers.no-area'));
  const departmentName = (id: string) => departments.value.find((each) => String(each.id) === id)?.name ?? t('work.nobody');
  const nameOf = (id: string) => categories.value.find((category) => String(category.id) === id)?.name ?? id;
  return (
    <>
      <FilterBar filters={filters} counts={undefined}>
        <label class="field">
          <span>{t('numbers.by')}</span>
          <select value={interval} onChange={(event) => setQuery({ interval: event.currentTarget.value })}>
            {INTERVALS.map((each) => (
              <option key={each} value={each}>
                {t(`numbers.${each}`)}
              </option>
            ))}
          </select>
        </label>
      </FilterBar>
      <Fault error={error} retry={() => void read()} />
      {found?.median_seconds !== undefined && <p>{t('numbers.median-is', { time: durationOf(found.median_seconds) })}</p>}
      {!found && !error && <Skeleton />}
      {numbers?.length === 0 && <p class="empty">{t('numbers.none')}</p>}
      {numbers && numbers.length > 0 && (
        <div class="numbers">
          <Backlog periods={backlog(numbers, found.open_at_end)} nameOf={(begin) => periodName(begin, interval)} />
          <SumTable
            caption={t('numbers.periods')}
            rows={sum(numbers, ({ begin }) => begin)}
            nameOf={(begin) => periodName(begin, interval)}
          />
          <SumTable caption={t('numbers.categories')} rows={sum(numbers, ({ category_id }) => String(category_id))} nameOf={nameOf} />
          <SumTable caption={t('numbers.departments')} rows={byDepartment} nameOf={departmentName} withState />
          {byArea.length > 0 && <SumTable caption={t('numbers.areas')} rows={byArea} nameOf={nameOfArea} withState />}
          <VerdictTable caption={t('numbers.verdicts')} rows={sum(numbers, ({ category_id }) => String(category_id))} nameOf={nameOf} />
          <VerdictTable caption={t('numbers.verdicts-departments')} rows={byDepartment} nameOf={departmentName} />
        </div>
      )}
    </>
  );
}

/** Adds up what has the same key, in the order of its first appearance. */
export function sum(numbers: PeriodNumbers[], keyOf: (each: PeriodNumbers) => string): [key: string, Sums][] {
  const sums = new Map<string, Sums>();
  for (const each of numbers) {
    const so = sums.get(keyOf(each)) ?? { filed: 0, resolved: 0, rejected: 0, confirmed: 0, disputed: 0, silent: 0 };
    for (const name of [...SUMS, ...VERDICTS]) so[name] += each[name];
    sums.set(keyOf(each), so);
  }
  return [...sums];
}

/** How many reports were open at the end of each period, the earliest first: from the end backwards. */
export function backlog(numbers: PeriodNumbers[], openAtEnd: number): [begin: string, open: number][] {
  const changes = new Map<string, number>();
  for (const { begin, filed, reopened, resolved, rejected } of numbers) {
    changes.set(begin, (changes.get(begin) ?? 0) + filed + reopened - resolved - rejected);
  }
  let open = openAtEnd;
  const ends: [string, number][] = [];
  for (const [begin, change] of [...changes].reverse()) {
    ends.unshift([begin, open]);
    open -= change;
  }
  return ends;
}

/** The backlog as columns, and as a table for those who do not see them. */
function Backlog({ periods, nameOf }: { periods: [begin: string, open: number][]; nameOf(begin: string): string }) {
  const most = Math.max(1, ...periods.map(([, open]) => open));
  const [first, last] = [periods[0]!, periods.at(-1)!];
  return (
    <figure class="backlog">
      <figcaption>
        {t('numbers.backlog')} <strong>{number(last[1])}</strong>
      </figcaption>
      <svg viewBox={`0 0 ${periods.length} 40`} preserveAspectRatio="none" aria-hidden="true">
        {periods.map(([begin, open], i) => (
          <rect key={begin} x={i + 0.1} width="0.8" y={40 - (open / most) * 40} height={(open / most) * 40}>
            <title>{`${nameOf(begin)}: ${number(open)}`}</title>
          </rect>
        ))}
      </svg>
      <p class="quiet bar spread" aria-hidden="true">
        <span>{nameOf(first[0])}</span>
        <span>{t('numbers.most', { count: number(most) })}</span>
        <span>{nameOf(last[0])}</span>
      </p>
      <div class="hidden">
        <table>
          <caption>{t('numbers.backlog')}</caption>
          <tbody>
            {periods.map(([begin, open]) => (
              <tr key={begin}>
                <th scope="row">{nameOf(begin)}</th>
                <td>{number(open)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}

/** Periods begin at midnight in the city, whose date comes first in begin. */
function periodName(begin: string, interval: Interval): string {
  const form: Intl.DateTimeFormatOptions = interval === 'month' ? { month: 'long', year: 'numeric' } : { dateStyle: 'medium' };
  const name = new Intl.DateTimeFormat(language.value, { ...form, timeZone: 'UTC' }).format(new Date(begin.slice(0, 10)));
  return interval === 'week' ? t('numbers.week-of', { day: name }) : name;
}

interface TableProps {
  caption: string;
  rows: [key: string, Sums][];
  nameOf(key: string): string;
  /** Whether there are columns for what is still open, and how long it took to resolve. */
  withState?: boolean;
}

/** So many seconds in the unit that one would say. */
export function durationOf(seconds: number): string {
  const [length, unit] =
    seconds >= 36 * 3600 ? [seconds / 86_400, 'day'] : seconds >= 5400 ? [seconds / 3600, 'hour'] : [seconds / 60, 'minute'];
  return new Intl.NumberFormat(language.value, {
    style: 'unit',
    unit,
    unitDisplay: 'long',
    maximumFractionDigits: length < 10 ? 1 : 0,
  }).format(length);
}

/** Each row has bars besides its figures: what was filed, and below what was done. */
function SumTable({ caption, rows, nameOf, withState = false }: TableProps) {
  const most = Math.max(1, ...rows.map(([, { filed, resolved, rejected }]) => Math.max(filed, resolved + rejected)));
  return (
    <div class="scrolls">
      <table class="sums">
        <caption>{caption}</caption>
        <thead>
          <tr>
            <td />
            {SUMS.map((name) => (
              <th key={name} scope="col">
                {t(`numbers.${name}`)}
              </th>
            ))}
            {withState && <th scope="col">{t('numbers.open')}</th>}
            {withState && <th scope="col">{t('numbers.median')}</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map(([key, sums]) => (
            <tr key={key}>
              <th scope="row">
                {nameOf(key)}
                <svg class="bars" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="filed" width={(sums.filed / most) * 100} height="3" />
                  <rect class="resolved" y="4" width={(sums.resolved / most) * 100} height="3" />
                  <rect class="rejected" y="4" x={(sums.resolved / most) * 100} width={(sums.rejected / most) * 100} height="3" />
                </svg>
              </th>
              {SUMS.map((name) => (
                <td key={name}>{number(sums[name])}</td>
              ))}
              {withState && <td>{number(sums.open_at_end ?? 0)}</td>}
              {withState && <td>{sums.median_seconds === undefined ? '–' : durationOf(sums.median_seconds)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The verdicts of reporters on resolutions; nothing where nobody was asked. */
function VerdictTable({ caption, rows, nameOf }: Pick<TableProps, 'caption' | 'rows' | 'nameOf'>) {
  const asked = rows.filter(([, sums]) => VERDICTS.some((name) => sums[name] > 0));
  if (asked.length === 0) return null;
  return (
    <div class="scrolls">
      <table class="sums">
        <caption>{caption}</caption>
        <thead>
          <tr>
            <td />
            {VERDICTS.map((name) => (
              <th key={name} scope="col">
                {t(`numbers.${name}`)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {asked.map(([key, sums]) => (
            <tr key={key}>
              <th scope="row">{nameOf(key)}</th>
              {VERDICTS.map((name) => (
                <td key={name}>{number(sums[name])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
