import { t } from '../lang/i18n';
import type { Point } from './plot';

/** The way there, on the page of OpenStreetMap: the link reveals the place, and nothing else. */
export function Directions({ points: [point] }: { points: Point[] }) {
  if (!point) return null;
  const to = `${point.latitude},${point.longitude}`;
  return (
    <p>
      <a href={`https://www.openstreetmap.org/directions?to=${encodeURIComponent(to)}`} target="_blank" rel="noopener noreferrer">
        {t('map.directions')}
      </a>
    </p>
  );
}
