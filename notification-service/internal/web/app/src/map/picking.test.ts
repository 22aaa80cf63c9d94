import { expect, test } from 'vitest';

import { renamed } from './picking';

test.each([
  ['', '', 'Jalan Salak', 'Jalan Salak'], // nothing is written yet
  ['Jalan Salak', 'Jalan Salak', 'Jalan Pahlawan', 'Jalan Pahlawan'], // the name of the place before
  ['Jalan Salak', 'Jalan Salak', '', ''], // of a place without a name
  ['Behind the market', 'Jalan Salak', 'Jalan Pahlawan', 'Behind the market'],
  ['Jalan Salak 77', '', 'Jalan Salak', 'Jalan Salak 77'], // a number that the reader knows
])('“%s”, once given as “%s”, becomes “%s” of the map: “%s”', (written, given, found, want) => {
  expect(renamed(written, given, found)).toBe(want);
});
