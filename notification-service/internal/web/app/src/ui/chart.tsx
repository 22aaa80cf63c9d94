import { number, t } from '../lang/i18n';

export interface Series {
  label: string;
  values: number[];
}

const WIDTH = 300;
const HEIGHT = 60;

/** A line over the last minutes, with what it says in words. */
export function Chart({ label, values, unit = '' }: Series & { unit?: string }) {
  const most = Math.max(...values, 0);
  const now = values.at(-1) ?? 0;
  const step = WIDTH / Math.max(values.length - 1, 1);
  const y = (value: number) => HEIGHT - 2 - (most > 0 ? (value / most) * (HEIGHT - 6) : 0);
  const points = values.map((value, i) => `${(i * step).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  const said = (value: number) => `${number(Math.round(value * 100) / 100)}${unit}`;
  return (
    <figure class="chart">
      <figcaption>
        <span>{label}</span> <strong>{said(now)}</strong>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={t('chart', { label, now: said(now), most: said(most) })}>
        <polygon points={`0,${HEIGHT} ${points} ${WIDTH},${HEIGHT}`} />
        <polyline points={points} />
      </svg>
      <small class="quiet">{t('chart.most', { most: said(most) })}</small>
    </figure>
  );
}

/** Keeps the last values of what is polled, so that it can be drawn. */
export function remember(values: number[], value: number, most = 150): number[] {
  return [...values, value].slice(-most);
}
