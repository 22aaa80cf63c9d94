import { useEffect, useState } from 'preact/hooks';

import { number, t } from '../lang/i18n';

export interface Line {
  /** What tells it from another line of the chart. */
  name?: 'p50' | 'p99';
  /** Oldest first; where there was nothing to measure the line has a gap. */
  values: (number | undefined)[];
}

interface Props {
  label: string;
  lines: [Line, ...Line[]];
  unit?: string;
}

const WIDTH = 300;
const HEIGHT = 60;

/** Lines over the last minutes, with what they say in words. */
export function Chart({ label, lines, unit = '' }: Props) {
  const most = highest(lines.flatMap(({ values }) => values));
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
        <span>{label}</span>
        {lines.map(({ name, values }) => (
          <span key={name} class={name}>
            {name} <strong>{said(values.at(-1))}</strong>
          </span>
        ))}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={words.join('. ')}>
        {lines.length === 1 && <path class="area" d={`M0,${HEIGHT}${path(lines[0].values, most).replace('M', 'L')}V${HEIGHT}Z`} />}
        {lines.map(({ name, values }) => (
          <path key={name} class={name} d={path(values, most)} />
        ))}
      </svg>
      <small class="quiet">{t('chart.most', { most: said(most) })}</small>
    </figure>
  );
}

function highest(values: (number | undefined)[]): number {
  return Math.max(0, ...values.filter((value) => value !== undefined));
}

/** Draws values, one after the other from left to right; a lone one is a dot. */
function path(values: Line['values'], most: number): string {
  const step = WIDTH / Math.max(values.length - 1, 1);
  const point = (value: number, i: number) =>
    `${(i * step).toFixed(1)},${(HEIGHT - 2 - (most > 0 ? (value / most) * (HEIGHT - 6) : 0)).toFixed(1)}`;
  return values
    .map((value, i) => (value === undefined ? '' : values[i - 1] === undefined ? `M${point(value, i)}h0` : `L${point(value, i)}`))
    .join('');
}

/** How many values are kept: five minutes of what is polled. */
const KEPT = 150;

/** The last values of something, oldest first, so that they can be drawn. */
export function useHistory<T>(value: T): T[] {
  const [past, setPast] = useState<T[]>([]);
  useEffect(() => setPast((values) => [...values, value].slice(-KEPT)), [value]);
  return past;
}
