/** Crockford's base 32: without I, L, O and U, which are heard or read as others. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/**
 * The number of a report on the telephone, such as 7KQ2-M9XB: the last 40
 * bits of its id, which are random. The search finds it, by
 * report-service's reference.go.
 */
export function reference(id: string): string {
  let bits = parseInt(id.slice(-10), 16);
  let text = '';
  for (let i = 0; i < 8; i++) {
    text = (ALPHABET[bits % 32] ?? '') + text;
    bits = Math.floor(bits / 32);
  }
  return `${text.slice(0, 4)}-${text.slice(4)}`;
}
