/** Addresses from the map's own names. */

export interface Position {
  latitude: number;
  longitude: number;
}

/** A feature of the tiles that has a name. */
export interface Named {
  name: string;
  /** Points in longitude and latitude; of a place there is one. */
  points: [number, number][];
}

export const METRES_PER_DEGREE = 111_320;
/** A street further away is not the one that somebody stands in. */
const STREET_M = 60;
const QUARTER_M = 3_000;

/** The nearest street and quarter, such as “Jalan Salak, Babakan”; nothing where there are neither. */
export function describePlace(at: Position, streets: Named[], quarters: Named[]): string {
  const parts = [nearest(at, streets, STREET_M), nearest(at, quarters, QUARTER_M)];
  return [...new Set(parts.filter((part) => part !== undefined))].join(', ');
}

function nearest(at: Position, named: Named[], within: number): string | undefined {
  let best = within;
  let found: string | undefined;
  for (const { name, points } of named) {
    const metres = distance(at, points);
    if (metres < best) [best, found] = [metres, name];
  }
  return found;
}

/** How many metres a position is from a line, or from a single point. */
export function distance({ latitude, longitude }: Position, points: [number, number][]): number {
  const narrow = Math.cos((latitude * Math.PI) / 180);
  // A plane will do for the width of a city.
  const flat = points.map(([lon, lat]) => [(lon - longitude) * narrow * METRES_PER_DEGREE, (lat - latitude) * METRES_PER_DEGREE] as const);
  let least = Infinity;
  flat.forEach(([x, y], i) => {
    const [x0, y0] = flat[i - 1] ?? [x, y];
    const [dx, dy] = [x - x0, y - y0];
    const along = dx === 0 && dy === 0 ? 0 : Math.min(1, Math.max(0, -(x0 * dx + y0 * dy) / (dx * dx + dy * dy)));
    least = Math.min(least, Math.hypot(x0 + along * dx, y0 + along * dy));
  });
  return least;
}
