/** Reports around a place. */
import { must, reportService, type Report, type Status } from '../api/client';
import { distance, METRES_PER_DEGREE, type Position } from '../map/address';

interface Wanted {
  status?: Status[];
  category?: number[];
  q?: string;
  limit: number;
}

/** Reports within so many metres to each side, the nearest first. */
export async function reportsNear(at: Position, metres: number, wanted: Wanted): Promise<Report[]> {
  const page = await must(reportService.GET('/reports', { params: { query: { bbox: boundingBox(at, metres), ...wanted } } }));
  return page.reports.toSorted((a, b) => metresTo(a, at) - metresTo(b, at));
}

export function boundingBox({ latitude, longitude }: Position, metres: number): string {
  const high = metres / METRES_PER_DEGREE;
  // Meridians meet at the poles: without a minimum the width would be infinite there.
  const wide = high / Math.max(0.01, Math.cos((latitude * Math.PI) / 180));
  const box = [longitude - wide, latitude - high, longitude + wide, latitude + high];
  return box.map((degrees, i) => clamp(degrees, i % 2 === 0 ? 180 : 90).toFixed(5)).join(',');
}

function clamp(value: number, most: number): number {
  return Math.min(most, Math.max(-most, value));
}

export function metresTo(report: Pick<Report, 'latitude' | 'longitude'>, at: Position): number {
  return distance(at, [[report.longitude ?? 0, report.latitude ?? 0]]);
}
