import { number, t } from '../lang/i18n';
import { timeOfDay } from './time';

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
  /** When the first value was measured. */
  since?: number | undefined;
}

const WIDTH = 300;
const HEIGHT = 60;

/** Lines over the last minutes, with what they say in words. */
export function Chart({ label, lines, unit = '', since }: Props) {
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
        <span>{label}</span>
        {lines.map(({ name, values }) => (
          <span key={name} class={name}>
            {name} <strong>{said(values.at(-1))}</strong>
          </span>
        ))}
      </figcaption>
      <div class="plot">
        <span class="axis top">{said(most)}</span>
        <span class="axis bottom">{number(0)}</span>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={words.join('. ')}>
          {lines.length === 1 && <path class="area" d={`M0,${HEIGHT}${path(lines[0].values, scale).replace('M', 'L')}V${HEIGHT}Z`} />}
          {lines.map(({ name, values }) => (
            <path key={name} class={name} d={path(values, scale)} />
          ))}
        </svg>
      </div>
      {since !== undefined && (
        <p class="axis times">
          <span>{timeOfDay(new Date(since))}</span>
          <span>{t('chart.now')}</span>
        </p>
      )}
    </figure>
  );
}

function highest(values: (number | undefined)[]): number {
  return Math.max(0, ...values.filter((value) => value !== undefined));
}

/** Draws values, one after the other from left to right; a lone one is a dot. */
function path(values: Line['values'], scale: (value: number) => number): string {
  const step = WIDTH / Math.max(values.length - 1, 1);
  const point = (value: number, i: number) => `${(i * step).toFixed(1)},${(HEIGHT - 2 - scale(value) * (HEIGHT - 6)).toFixed(1)}`;
  return values
    .map((value, i) => (value === undefined ? '' : values[i - 1] === undefined ? `M${point(value, i)}h0` : `L${point(value, i)}`))
    .join('');
}
