import { useEffect, useMemo, useState } from 'preact/hooks';

import { must, reportService, type AreaShapes, type NumbersOverTime, type PeriodNumbers } from '../../api/client';
import { language, number, t } from '../../lang/queue';
import { categories } from '../../state/categories';
import { areaName, areas, departments } from '../../state/desk';
import { queryOf, type QueueFilters } from '../../state/filters';
import { share, valueTicks } from '../../ui/axis';
import { Options } from '../../ui/field';
import { Fault } from '../../ui/problem';
import { route, setQuery } from '../../ui/router';
import { Skeleton } from '../../ui/skeleton';
import { FilterBar } from './filters';

const INTERVALS = ['day', 'week', 'month'] as const;
type Interval = (typeof INTERVALS)[number];

type Sums = Pick<PeriodNumbers, (typeof SUMS)[number] | (typeof VERDICTS)[number]> & { median_seconds?: number; open_at_end?: number };
const SUMS = ['filed', 'resolved', 'rejected'] as const;
const VERDICTS = ['confirmed', 'disputed', 'silent'] as const;

/** The weeks that are shown where no other time is chosen, and the times at hand, with what they are grouped by. */
const QUARTER = 13;
const TIMES = [
  { name: 'numbers.month-back', weeks: 4, interval: 'day' },
  { name: 'numbers.quarter-back', weeks: QUARTER, interval: 'week' },
  { name: 'numbers.year-back', weeks: 52, interval: 'month' },
] as const;

const DAY_MS = 86_400_000;
/** A day of the reader's, as addresses have it. */
const dayBefore = (to: Date, days: number) => {
  const day = new Date(to);
  day.setDate(day.getDate() - days);
  return [day.getFullYear(), day.getMonth() + 1, day.getDate()].map((part) => String(part).padStart(2, '0')).join('-');
};

/** The time that is shown: the one in the address, or the last quarter; and the one before it, of the same length. */
export function timesOf({ from, to }: Pick<QueueFilters, 'from' | 'to'>, today: Date) {
  const last = to || dayBefore(today, 0);
  const first = from || dayBefore(new Date(`${last}T00:00`), QUARTER * 7 - 1);
  const days = Math.max(1, Math.round((Date.parse(last) - Date.parse(first)) / DAY_MS) + 1);
  const before = new Date(`${first}T00:00`);
  return { now: { from: first, to: last }, before: { from: dayBefore(before, days), to: dayBefore(before, 1) }, days };
}

/** The numbers of a time beside those of the time before: in all, by week, category, department and area, on one page. */
export function Numbers({ filters }: { filters: QueueFilters }) {
  const interval = INTERVALS.find((each) => each === route.value.query.get('interval')) ?? 'week';
  const times = timesOf(filters, new Date());
  const [found, setFound] = useState<{ now: NumbersOverTime; before: NumbersOverTime }>();
  const [error, setError] = useState<unknown>();
  const asked = JSON.stringify([filters, times, interval]);
  const read = () => {
    let latest = true;
    const count = (time: { from: string; to: string }) =>
      must(reportService.GET('/reports/numbers', { params: { query: { ...queryOf({ ...filters, ...time }), interval } } }));
    Promise.all([count(times.now), count(times.before)]).then(
      ([now, before]) => {
        if (!latest) return;
        setFound({ now, before });
        setError(undefined);
      },
      (failure: unknown) => latest && setError(failure),
    );
    return () => {
      latest = false;
    };
  };
  useEffect(read, [asked]);

  const counted = (names: readonly ((typeof SUMS)[number] | (typeof VERDICTS)[number])[]) =>
    names.map((name): TableProps['columns'][number] => [t(`numbers.${name}`), (sums) => number(sums[name])]);
  const [done, said] = [counted(SUMS), counted(VERDICTS)];
  const state: TableProps['columns'] = [
    [t('numbers.open'), ({ open_at_end = 0 }) => number(open_at_end)],
    [t('numbers.median'), ({ median_seconds }) => (median_seconds === undefined ? '–' : durationOf(median_seconds))],
  ];
  const wasAsked = ([, sums]: [string, Sums]) => VERDICTS.some((name) => sums[name] > 0);
  const numbers = found?.now.numbers;
  const byDepartment = (found?.now.departments ?? []).map((each): [string, Sums] => [String(each.department_id ?? 0), each]);
  const byArea = (found?.now.areas ?? []).map((each): [string, Sums] => [each.area ?? '', each]);
  const byCategory = sum(numbers ?? [], ({ category_id }) => String(category_id));
  const nameOfArea = (code: string) => (code ? areaName(code) : t('numbers.no-area'));
  const departmentName = (id: string) => departments.value.find((each) => String(each.id) === id)?.name ?? t('numbers.no-department');
  const nameOf = (id: string) => categories.value.find((category) => String(category.id) === id)?.name ?? id;
  return (
    <div class="statistics">
      <FilterBar filters={{ ...filters, from: '', to: '' }} counts={undefined}>
        <label class="pick">
          <span class="hidden">{t('numbers.by')}</span>
          <select value={interval} onChange={(event) => setQuery({ interval: event.currentTarget.value })}>
            <Options of={INTERVALS.map((each) => [each, `${t('numbers.by')} ${t(`numbers.${each}`).toLowerCase()}`])} />
          </select>
        </label>
      </FilterBar>
      <div class="bar times-shown">
        {TIMES.map(({ name, weeks, interval: by }) => {
          const from = dayBefore(new Date(), weeks * 7 - 1);
          const isShown = times.now.from === from && times.now.to === dayBefore(new Date(), 0);
          return (
            <button
              key={name}
              type="button"
              class="quiet-button"
              aria-pressed={isShown}
              onClick={() => setQuery({ from, to: '', interval: by })}
            >
              {t(name)}
            </button>
          );
        })}
        {(['from', 'to'] as const).map((bound) => (
          <label key={bound} class="bound">
            <span>{t(`numbers.${bound}`)}</span>
            <input type="date" value={times.now[bound]} onChange={(event) => setQuery({ [bound]: event.currentTarget.value })} />
          </label>
        ))}
        <button type="button" class="quiet-button" onClick={() => print()}>
          {t('numbers.print')}
        </button>
      </div>
      <p class="printed">
        {periodName(times.now.from, 'day')} – {periodName(times.now.to, 'day')}
      </p>
      <Fault error={error} retry={() => void read()} />
      {!found && !error && <Skeleton />}
      {found && <Trends now={found.now} before={found.before} days={times.days} />}
      {numbers?.length === 0 && <p class="empty">{t('numbers.none')}</p>}
      {numbers && numbers.length > 0 && (
        <div class="numbers">
          <Columns
            caption={t('numbers.periods')}
            periods={filled(
              sum(numbers, ({ begin }) => begin.slice(0, 10)),
              interval,
            )}
            interval={interval}
            series={['filed', 'resolved']}
          />
          <Columns
            caption={t('numbers.backlog')}
            periods={backlog(numbers, found.now.open_at_end).map(([begin, open]) => [begin.slice(0, 10), { open }])}
            interval={interval}
            series={['open']}
          />
          {byArea.length > 0 && <AreaMap rows={byArea} />}
          <SumTable caption={t('numbers.areas')} rows={byArea} nameOf={nameOfArea} columns={[...done, ...state]} bars />
          <SumTable caption={t('numbers.categories')} rows={byCategory} nameOf={nameOf} columns={done} bars />
          <SumTable caption={t('numbers.departments')} rows={byDepartment} nameOf={departmentName} columns={[...done, ...state]} bars />
          <SumTable caption={t('numbers.verdicts')} rows={byCategory.filter(wasAsked)} nameOf={nameOf} columns={said} />
          <SumTable
            caption={t('numbers.verdicts-departments')}
            rows={byDepartment.filter(wasAsked)}
            nameOf={departmentName}
            columns={said}
          />
        </div>
      )}
    </div>
  );
}

/** The figures of the whole time, each with what it was in the time before. */
function Trends({ now, before, days }: { now: NumbersOverTime; before: NumbersOverTime; days: number }) {
  const total = ({ numbers }: NumbersOverTime, name: (typeof SUMS)[number]) => numbers.reduce((all, each) => all + each[name], 0);
  const figures: [name: string, now: number | undefined, before: number | undefined, say: (value: number) => string][] = [
    [t('numbers.filed'), total(now, 'filed'), total(before, 'filed'), number],
    [t('numbers.resolved'), total(now, 'resolved'), total(before, 'resolved'), number],
    [t('numbers.open'), now.open_at_end, before.open_at_end, number],
    [t('numbers.median'), now.median_seconds, before.median_seconds, durationOf],
  ];
  return (
    <dl class="trends">
      {figures.map(([name, value, past, say]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <strong>{value === undefined ? '–' : say(value)}</strong>
            {past !== undefined && value !== undefined && (
              <span class="quiet">
                {past > 0 && `${change(value / past - 1)} · `}
                {t('numbers.before', { value: say(past), days: number(days) })}
              </span>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

const change = (part: number) =>
  new Intl.NumberFormat(language.value, { style: 'percent', maximumFractionDigits: 0, signDisplay: 'exceptZero' }).format(part);

/** Periods with those in which nothing happened, so that the axis of time has no gaps. */
export function filled<Row>(rows: [begin: string, row: Row][], interval: Interval): [string, Partial<Row>][] {
  const known = new Map(rows);
  const last = rows.at(-1)?.[0] ?? '';
  const all: [string, Partial<Row>][] = [];
  for (const day = new Date(rows[0]?.[0] ?? NaN); day.toISOString().slice(0, 10) <= last;) {
    const begin = day.toISOString().slice(0, 10);
    all.push([begin, known.get(begin) ?? {}]);
    if (interval === 'month') day.setUTCMonth(day.getUTCMonth() + 1);
    else day.setUTCDate(day.getUTCDate() + (interval === 'week' ? 7 : 1));
  }
  return all;
}

interface ColumnsProps<Series extends string> {
  caption: string;
  periods: [begin: string, row: Partial<Record<Series, number>>][];
  interval: Interval;
  series: Series[];
}

/** So many periods have their names below them at the most. */
const NAMED = 7;

/** Columns over time, with both axes; each says its figures. */
function Columns<Series extends 'filed' | 'resolved' | 'open'>({ caption, periods, interval, series }: ColumnsProps<Series>) {
  const marks = valueTicks(Math.max(...periods.flatMap(([, row]) => series.map((name) => row[name] ?? 0))), 'linear');
  const height = (value: number) => `${share(value, marks.at(-1) ?? 1, 'linear') * 100}%`;
  const every = Math.ceil(periods.length / NAMED);
  return (
    <figure class="columns-chart">
      <figcaption>
        {caption}
        {series.length > 1 &&
          series.map((name) => (
            <span key={name} class={`key ${name}`}>
              {t(`numbers.${name}`)}
            </span>
          ))}
      </figcaption>
      <div class="plotted">
        {marks.map((mark) => (
          <span key={mark} class="mark" aria-hidden="true" style={{ bottom: height(mark) }}>
            {number(mark)}
          </span>
        ))}
        <ol>
          {periods.map(([begin, row], i) => {
            const told = [periodName(begin, interval), ...series.map((name) => `${t(`numbers.${name}`)}: ${number(row[name] ?? 0)}`)].join(
              ', ',
            );
            return (
              <li key={begin} title={told}>
                <span class="hidden">{told}</span>
                {series.map((name) => (
                  <i key={name} class={name} style={{ height: height(row[name] ?? 0) }} />
                ))}
                {i % every === 0 && <small aria-hidden="true">{periodName(begin, interval, 'short')}</small>}
              </li>
            );
          })}
        </ol>
      </div>
    </figure>
  );
}

/** The areas, darker the more was filed there; the table beside it has the figures. */
function AreaMap({ rows }: { rows: [code: string, sums: Sums][] }) {
  const [shapes, setShapes] = useState<AreaShapes['features']>();
  useEffect(() => {
    must(reportService.GET('/areas')).then(
      ({ features }) => setShapes(features),
      () => {},
    ); // the table says it as well
  }, [areas.value]);
  const drawn = useMemo(() => drawnAreas(shapes ?? []), [shapes]);
  if (!drawn) return null;
  const filed = new Map(rows.map(([code, sums]) => [code, sums.filed]));
  const most = Math.max(1, ...filed.values());
  return (
    <figure class="area-map">
      <figcaption>{t('numbers.map')}</figcaption>
      <svg viewBox={drawn.viewBox} aria-hidden="true">
        {drawn.areas.map(({ code, path, x, y }) => {
          const count = filed.get(code) ?? 0;
          return (
            <g key={code}>
              <path d={path} fill-opacity={0.08 + 0.72 * (count / most)}>
                <title>{`${areaName(code)}: ${number(count)}`}</title>
              </path>
              <text x={x} y={y} font-size="42" class={count / most > 0.5 ? 'on' : undefined}>
                {number(count)}
              </text>
            </g>
          );
        })}
      </svg>
    </figure>
  );
}

/** The outlines of areas as paths with north on top, a thousand wide; undefined without any. */
export function drawnAreas(features: AreaShapes['features']) {
  const all = features.map(({ geometry, properties: { code } }) => ({ code, rings: (geometry?.coordinates ?? []).flat() }));
  const [, latitude = 0] = all[0]?.rings[0]?.[0] ?? [];
  const place = ([east = 0, north = 0]: number[]): Point => [east * Math.cos((latitude * Math.PI) / 180), -north];
  const [left, top, right, bottom] = bounds(all.flatMap(({ rings }) => rings.flat().map(place)));
  if (!(right > left)) return undefined;
  const scale = (value: number, from: number) => Math.round(((value - from) / (right - left)) * 1000);
  const at = (point: number[]) => [scale(place(point)[0], left), scale(place(point)[1], top)].join();
  return {
    viewBox: `-5 -5 1010 ${scale(bottom, top) + 10}`,
    areas: all.map(({ code, rings }) => {
      const [west, north, east, south] = bounds(rings.flat().map(place));
      const path = rings.map((ring) => `M${ring.map(at).join('L')}Z`).join('');
      return { code, path, x: scale((west + east) / 2, left), y: scale((north + south) / 2, top) };
    }),
  };
}

type Point = [x: number, y: number];

const bounds = (points: Point[]) =>
  points.reduce(
    ([left, top, right, bottom], [x, y]) => [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)] as const,
    [Infinity, Infinity, -Infinity, -Infinity] as readonly [number, number, number, number],
  );

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

/** Periods begin at midnight in the city, whose date comes first in begin. */
function periodName(begin: string, interval: Interval, month: 'long' | 'short' = 'long'): string {
  const form: Intl.DateTimeFormatOptions = month === 'short' ? {} : { year: 'numeric' };
  const days: Intl.DateTimeFormatOptions = interval === 'month' ? {} : { day: 'numeric' };
  const name = new Intl.DateTimeFormat(language.value, { ...form, ...days, month, timeZone: 'UTC' }).format(new Date(begin.slice(0, 10)));
  return interval === 'week' && month === 'long' ? t('numbers.week-of', { day: name }) : name;
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

interface TableProps {
  caption: string;
  rows: [key: string, Sums][];
  nameOf(key: string): string;
  /** The headings with their figures. */
  columns: [heading: string, figure: (sums: Sums) => string][];
  /** Whether rows have bars: what was filed, and below what was done. */
  bars?: boolean;
}

function SumTable({ caption, rows, nameOf, columns, bars }: TableProps) {
  const most = Math.max(1, ...rows.map(([, { filed, resolved, rejected }]) => Math.max(filed, resolved + rejected)));
  if (rows.length === 0) return null;
  return (
    <div class="scrolls">
      <table class="sums">
        <caption>{caption}</caption>
        <thead>
          <tr>
            <td />
            {columns.map(([heading]) => (
              <th key={heading} scope="col">
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([key, sums]) => (
            <tr key={key}>
              <th scope="row">
                {nameOf(key)}
                {bars && (
                  <svg class="bars" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                    <rect class="filed" width={(sums.filed / most) * 100} height="3" />
                    <rect class="resolved" y="4" width={(sums.resolved / most) * 100} height="3" />
                    <rect class="rejected" y="4" x={(sums.resolved / most) * 100} width={(sums.rejected / most) * 100} height="3" />
                  </svg>
                )}
              </th>
              {columns.map(([heading, figure]) => (
                <td key={heading}>{figure(sums)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
