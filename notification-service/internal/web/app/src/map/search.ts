/** Places from the map's own names: no service is asked, so the search stays on the device. */
import { distance, type Named, type Position } from './address';

export interface Found {
  name: string;
  /** The quarter that it lies in; empty where the map has none. */
  quarter: string;
  position: Position;
  /** The house number that was looked for, and that the map does not know. */
  unknownNumber?: string;
}

const MAX_FOUND = 6;
/** Two streets of one name further apart than this are two. */
const SAME_M = 1_500;

/** Words that signs and people shorten. */
const SHORT: Record<string, string> = { jl: 'jalan', jln: 'jalan', gg: 'gang', st: 'street', rd: 'road', ave: 'avenue', kp: 'kampung' };

/** Such as 77, 77a, or the word before it. */
const HOUSE_NUMBER = /^(\d+\p{L}?|no|nomor|number|rt|rw|blok|block)$/u;

/** The words of a name or a search, however they were written. */
function words(text: string): string[] {
  const plain = text.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase();
  return (plain.match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => SHORT[word] ?? word);
}

/**
 * The streets and quarters in whose names each word of text begins a word, the
 * nearest to `near` first.
 */
export function findPlaces(text: string, near: Position, streets: Named[], quarters: Named[]): Found[] {
  const wanted = words(text);
  const found = findAll(wanted, near, streets, quarters);
  if (found.length > 0) return found;
  // The map has no house numbers: the street is as near as it comes.
  const street = wanted.filter((word) => !HOUSE_NUMBER.test(word));
  if (street.length === wanted.length) return [];
  const unknownNumber = wanted.find((word) => /^\d/.test(word));
  return findAll(street, near, streets, quarters).map((place) => ({ ...place, ...(unknownNumber && { unknownNumber }) }));
}

function findAll(wanted: string[], near: Position, streets: Named[], quarters: Named[]): Found[] {
  if (wanted.join('').length < 2) return [];
  const nearest: (Found & { metres: number })[] = [];
  const matches = (name: string) => {
    const has = words(name);
    return wanted.every((word) => has.some((each) => each.startsWith(word)));
  };
  for (const { name, points } of [...quarters, ...streets].filter(({ name }) => matches(name))) {
    // A street comes in pieces: one for each tile, and for each crossing.
    const [longitude, latitude] = points[Math.floor(points.length / 2)] ?? [0, 0];
    const position = { latitude, longitude };
    const metres = distance(near, points);
    const known = nearest.find((each) => each.name === name && distance(each.position, points) < SAME_M);
    if (!known) nearest.push({ name, quarter: '', position, metres });
    else if (metres < known.metres) Object.assign(known, { position, metres });
  }
  return nearest
    .toSorted((a, b) => a.metres - b.metres)
    .slice(0, MAX_FOUND)
    .map(({ name, position }) => ({ name, position, quarter: quarterOf(name, position, quarters) }));
}

function quarterOf(name: string, at: Position, quarters: Named[]): string {
  const [nearest] = quarters
    .filter((quarter) => quarter.name !== name)
    .map((quarter) => ({ quarter, metres: distance(at, quarter.points) }))
    .toSorted((a, b) => a.metres - b.metres);
  return nearest?.quarter.name ?? '';
}
