import type { Report } from '../api/client';
import type { Point } from './plot';

/** The report as a point of a map, if it has a position. */
export function located({
  id,
  title,
  status,
  latitude,
  longitude,
}: Pick<Report, 'id' | 'title' | 'status' | 'latitude' | 'longitude'>): Point[] {
  return latitude === undefined || longitude === undefined ? [] : [{ id, label: title, status, latitude, longitude }];
}
