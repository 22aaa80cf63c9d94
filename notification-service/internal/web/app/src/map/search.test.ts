import { expect, test } from 'vitest';

import type { Named } from './address';
import { findPlaces } from './search';

const near = { latitude: -6.595, longitude: 106.7995 };
const street = (name: string, east: number, north = 0): Named => ({
  name,
  points: [
    [106.7995 + east, -6.595 + north],
    [106.7996 + east, -6.595 + north],
  ],
});
const quarters: Named[] = [
  { name: 'Babakan', points: [[106.805, -6.595]] },
  { name: 'Bantarjati', points: [[106.81, -6.575]] },
];
const streets = [
  street('Jalan Salak', 0.01),
  street('Jalan Salak', 0.002),
  street('Jalan Malabar', 0.001),
  street('Jalan Salak', 0.01, 0.03),
];
const found = (text: string) => findPlaces(text, near, streets, quarters).map(({ name, quarter }) => `${name}, ${quarter}`);

test('a street is found by the beginnings of its words, the nearest first, and once', () => {
  expect(found('salak')).toEqual(['Jalan Salak, Babakan', 'Jalan Salak, Bantarjati']);
  expect(found('jl. sal')).toEqual(found('salak'));
  expect(found('Jln MALABAR')).toEqual(['Jalan Malabar, Babakan']);
  expect(findPlaces('salak', near, streets, quarters)[0]?.position).toEqual({ latitude: -6.595, longitude: 106.8016 });
});

test('a quarter is found, too', () => expect(found('bantar')).toEqual(['Bantarjati, Babakan']));

test('accents and signs make no difference', () => {
  expect(findPlaces('cafe', near, [street('Rue du Café', 0)], []).map(({ name }) => name)).toEqual(['Rue du Café']);
});

test('a letter, a sign and what the map does not have find nothing', () => {
  expect([found('s'), found('., '), found('Malioboro')]).toEqual([[], [], []]);
});

test('no more than six are offered', () => {
  const many = Array.from({ length: 20 }, (_, i) => street(`Gang Mawar ${i}`, i / 1000));
  expect(findPlaces('mawar', near, many, []).map(({ name }) => name)).toEqual([0, 1, 2, 3, 4, 5].map((i) => `Gang Mawar ${i}`));
});

test('a house number does not spoil the street, and that it is not known is said', () => {
  const numbers = (text: string) => findPlaces(text, near, streets, quarters).map(({ unknownNumber }) => unknownNumber);
  expect([numbers('Jalan Malabar 77'), numbers('jl malabar no. 12b'), numbers('malabar'), numbers('malabar no')]).toEqual([
    ['77'],
    ['12b'],
    [undefined],
    [undefined],
  ]);
  expect(found('Jalan Malabar 77')).toEqual(['Jalan Malabar, Babakan']);
  expect(found('jl malabar no. 12b')).toEqual(['Jalan Malabar, Babakan']);
  expect(found('77')).toEqual([]);
  expect(findPlaces('gang mawar 3', near, [street('Gang Mawar 3', 0), street('Gang Mawar 4', 0.001)], [])).toHaveLength(1);
});
