import { useState } from 'preact/hooks';

import { number, t } from '../lang/console';
import { timeOfDay } from './time';

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

const WIDTH = 300;
const HEIGHT = 60;

/** Lines over the last hours, with what they say in words; who points at one is told its value. */
export function Chart({ label, lines, unit = '', times: { since, step } }: Props) {
  const [at, setAt] = useState<number>();
  const steps = lines[0].values.length;
  // The present counts only once it is over.
  const shown = at !== undefined && at < steps ? at : steps - 1;
  const timeOf = (i: number) => timeOfDay(new Date(since + i * step));
  const most = highest(lines.flatMap(({ values }) => values));
  // A percentile can be a hundred times the median: on one scale both are seen by their magnitudes.
  const share = lines.length === 1 ? (value: number) => value / most : (value: number) => Math.log1p(value) / Math.log1p(most);
  const scale = (value: number) => (most > 0 ? share(value) : 0);
  const said = (value: number | undefined, none = '–') => (value === undefined ? none : `${number(Math.round(value * 100) / 100)}${unit}`);
  const words = lines.map(({ name, values }) =>
    t('chart', {
      label: name ? `${label}, ${t(`chart.${name}`)}` : label,
      now: said(values.at(-1), t('chart.none')),
      most: said(highest(values)),
    }),
  );
  return (
    <figure class="chart">
      <figcaption>
        <span>
          {label}
          {at !== undefined && <span class="quiet"> · {timeOf(shown)}</span>}
        </span>
        {lines.map(({ name, values }) => (
          <span key={name} class={name}>
            {name} <strong>{said(values[shown])}</strong>
          </span>
        ))}
      </figcaption>
      <div
        class="plot"
        onPointerMove={({ currentTarget, clientX }) => {
          const { left, width } = currentTarget.getBoundingClientRect();
          setAt(Math.max(0, Math.min(steps - 1, Math.round(((clientX - left) / width) * (steps - 1)))));
        }}
        onPointerLeave={() => setAt(undefined)}
      >
        <span class="axis top">{said(most)}</span>
        <span class="axis bottom">{number(0)}</span>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={words.join('. ')}>
          {lines.length === 1 && <path class="area" d={area(lines[0].values, scale)} />}
          {[1, 2, 3].map((part) => (
            <path key={part} class="rule" d={`M${(WIDTH * part) / 4},0V${HEIGHT}`} />
          ))}
          {lines.map(({ name, values }) => (
            <path key={name} class={name} d={path(values, scale)} />
          ))}
          {at !== undefined && <path class="pointer" d={`M${((WIDTH * shown) / Math.max(steps - 1, 1)).toFixed(1)},0V${HEIGHT}`} />}
        </svg>
      </div>
      <p class="axis times">
        {[0, 1, 2, 3, 4].map((part) => (
          <span key={part}>{part === 4 ? t('chart.now') : timeOf((steps * part) / 4)}</span>
        ))}
      </p>
    </figure>
  );
}

function highest(values: (number | undefined)[]): number {
  return Math.max(0, ...values.filter((value) => value !== undefined));
}

/** What is below the line: as many areas as it has parts between its gaps. */
function area(values: Line['values'], scale: (value: number) => number): string {
  return path(values, scale)
    .split('M')
    .slice(1)
    .map((part) => `M${part.split(',')[0]},${HEIGHT}L${part.replace('h0', '')}V${HEIGHT}Z`)
    .join('');
}

/** Draws values, one after the other from left to right; a lone one is a dot. */
function path(values: Line['values'], scale: (value: number) => number): string {
  const step = WIDTH / Math.max(values.length - 1, 1);
  const point = (value: number, i: number) => `${(i * step).toFixed(1)},${(HEIGHT - 2 - scale(value) * (HEIGHT - 6)).toFixed(1)}`;
  return values
    .map((value, i) => (value === undefined ? '' : values[i - 1] === undefined ? `M${point(value, i)}h0` : `L${point(value, i)}`))
    .join('');
}
