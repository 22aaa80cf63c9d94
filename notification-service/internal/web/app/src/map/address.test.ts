import { expect, test } from 'vitest';

import { describePlace, distance } from './address';

const here = { latitude: -6.595, longitude: 106.8 };
/** A point so many metres east and north of here. */
const off = (east: number, north: number): [number, number] => [
  here.longitude + east / 111_320 / Math.cos((here.latitude * Math.PI) / 180),
  here.latitude + north / 111_320,
];

test('a distance is to the nearest part of a line, not to its ends', () => {
  expect(distance(here, [off(-100, 20), off(100, 20)])).toBeCloseTo(20, 1);
  expect(distance(here, [off(30, 40)])).toBeCloseTo(50, 1);
  expect(distance(here, [off(30, 40), off(60, 80)])).toBeCloseTo(50, 1);
});

test('a place is called after its street and its quarter', () => {
  const streets = [
    { name: 'Jalan Jauh', points: [off(-100, 55), off(100, 55)] },
    { name: 'Jalan Salak', points: [off(-100, 12), off(100, 12)] },
  ];
  const quarters = [{ name: 'Babakan', points: [off(800, 0)] }];
  expect(describePlace(here, streets, quarters)).toBe('Jalan Salak, Babakan');
  expect(describePlace(here, [{ name: 'Too far', points: [off(0, 61)] }], quarters)).toBe('Babakan');
  expect(describePlace(here, [], [])).toBe('');
});
