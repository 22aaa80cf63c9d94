import { expect, test, vi } from 'vitest';

vi.mock('../../live/live', () => ({ onStream: () => {} }));

import { boundingBox } from './duplicates';

const box = (latitude: number, longitude: number) =>
  boundingBox({ latitude, longitude }).split(',').map(Number) as [number, number, number, number];

test('the area is 150 m to each side, also where meridians are closer', () => {
  for (const latitude of [0, -6.9, 60]) {
    const [west, south, east, north] = box(latitude, 107.6);
    const metres = 111_320;
    expect((north - south) * metres).toBeCloseTo(300, -1);
    expect((east - west) * metres * Math.cos((latitude * Math.PI) / 180)).toBeCloseTo(300, -1);
  }
});

test('the area stays on the map', () => {
  expect(box(90, 180)).toEqual([expect.closeTo(179.865, 2), expect.closeTo(89.999, 2), 180, 90]);
});
