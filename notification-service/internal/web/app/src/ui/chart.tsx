import { signal } from '@preact/signals';
import { useState } from 'preact/hooks';

import { number, t } from '../lang/console';
import { share, timeTicks, valueTicks, type Scale } from './axis';
import { exactTime, timeOfDay, weekday } from './time';
import { Choice } from './field';

export interface Line {
  /** Its name among the lines of the chart. */
  name?: 'p50' | 'p99';
  /** Oldest first; where there was nothing to measure the line has a gap. */
  values: (number | undefined)[];
}

interface Props {
  label: string;
  lines: [Line, ...Line[]];
  unit?: string;
  /** When the time of the first value begins, and how long that of each is, in milliseconds. */
  times: { since: number; step: number };
}

const DAY_MS = 86_400_000;
const WIDTH = 300;
const HEIGHT = 60;

/** How charts of several lines are drawn: a percentile can be a hundred times the median. */
const scale = signal<Scale>('linear');

/** Lines over the last hours, with their meaning in words; pointing at one shows its value. */
export function Chart({ label, lines, unit = '', times: { since, step } }: Props) {
  const [at, setAt] = useState<number>();
  const steps = lines[0].values.length;
  const last = Math.max(steps - 1, 1);
  // The present counts only once it is over.
  const shown = at !== undefined && at < steps ? at : steps - 1;
  const kind = lines.length === 1 ? 'linear' : scale.value;
  const marks = valueTicks(highest(lines.flatMap(({ values }) => values)), kind);
  const top = marks.at(-1) ?? 1;
  const y = (value: number) => HEIGHT * (1 - share(value, top, kind));
  const said = (value: number | undefined, none = '–') => (value === undefined ? none : `${number(Math.round(value * 100) / 100)}${unit}`);
  const words = lines.map(({ name, values }) =>
    t('chart', {
      label: name ? `${label}, ${t(`chart.${name}`)}` : label,
      now: said(values.at(-1), t('chart.none')),
      most: said(highest(values)),
    }),
  );
  // From 0 at the first value to 1 at the last; what would stand in the way of "now" is left out.
  const days = last * step > 2 * DAY_MS;
  const mark = (date: Date) => (days ? weekday(date) : timeOfDay(date));
  const clock = timeTicks(since, since + last * step).map((time) => ({ time, place: (time - since) / (last * step) }));
  return (
    <figure class="chart">
      <figcaption>
        <span>
          {label}
          {kind === 'log' && <span class="quiet"> · {t('chart.scale.log')}</span>}
          {at !== undefined && <span class="quiet"> · {(days ? exactTime : timeOfDay)(new Date(since + shown * step))}</span>}
        </span>
        {lines.map(({ name, values }) => (
          <span key={name} class={name}>
            {name} <strong>{said(values[shown])}</strong>
          </span>
        ))}
      </figcaption>
      <div class="plotted">
        <div class="axis values" aria-hidden="true">
          <span class="widest">{said(marks.reduce((a, b) => (said(b).length > said(a).length ? b : a), 0))}</span>
          {marks.map((mark) => (
            <span key={mark} style={{ top: `${(y(mark) / HEIGHT) * 100}%` }}>
              {said(mark)}
            </span>
          ))}
        </div>
        <div
          class="plot"
          onPointerMove={({ currentTarget, clientX }) => {
            const { left, width } = currentTarget.getBoundingClientRect();
            setAt(Math.max(0, Math.min(steps - 1, Math.round(((clientX - left) / width) * last))));
          }}
          onPointerLeave={() => setAt(undefined)}
        >
          <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={words.join('. ')}>
            {lines.length === 1 && <path class="area" d={area(lines[0].values, y)} />}
            {marks.map((mark) => (
              <path key={`value ${mark}`} class="rule" d={`M0,${y(mark).toFixed(1)}H${WIDTH}`} />
            ))}
            {clock.map(({ time, place }) => (
              <path key={`time ${time}`} class="rule" d={`M${(WIDTH * place).toFixed(1)},0V${HEIGHT}`} />
            ))}
            {lines.map(({ name, values }) => (
              <path key={name} class={name} d={path(values, y)} />
            ))}
            {at !== undefined && <path class="pointer" d={`M${((WIDTH * shown) / last).toFixed(1)},0V${HEIGHT}`} />}
          </svg>
        </div>
        <p class="axis times">
          {clock
            .filter(({ place }) => place < 0.8)
            .map(({ time, place }) => (
              <span key={time} style={{ left: `${place * 100}%` }}>
                {mark(new Date(time))}
              </span>
            ))}
          <span class="now">{t('chart.now')}</span>
        </p>
      </div>
    </figure>
  );
}

/** Chooses how lines of different magnitude are drawn. */
export function ChooseScale() {
  return (
    <Choice
      class="range"
      label={t('chart.scale')}
      value={scale.value}
      options={(['linear', 'log'] as const).map((kind) => [kind, t(`chart.scale.${kind}`)])}
      onValue={(kind) => (scale.value = kind as Scale)}
    />
  );
}

/** A line as small as a word, for a cell of a table: what it says stands beside it. */
export function Spark({ label, values }: { label: string; values: (number | undefined)[] }) {
  const most = highest(values);
  const y = (value: number) => HEIGHT - 3 - (most > 0 ? value / most : 0) * (HEIGHT - 6);
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path d={path(values, y)} />
    </svg>
  );
}

function highest(values: (number | undefined)[]): number {
  return Math.max(0, ...values.filter((value) => value !== undefined));
}

/** The area below the line: as many areas as it has parts between its gaps. */
function area(values: Line['values'], y: (value: number) => number): string {
  return path(values, y)
    .split('M')
    .slice(1)
    .map((part) => `M${part.split(',')[0]},${HEIGHT}L${part.replace('h0', '')}V${HEIGHT}Z`)
    .join('');
}

/** Draws values, one after the other from left to right; a lone one is a dot. */
function path(values: Line['values'], y: (value: number) => number): string {
  const step = WIDTH / Math.max(values.length - 1, 1);
  const point = (value: number, i: number) => `${(i * step).toFixed(1)},${y(value).toFixed(1)}`;
  return values
    .map((value, i) => (value === undefined ? '' : values[i - 1] === undefined ? `M${point(value, i)}h0` : `L${point(value, i)}`))
    .join('');
}
