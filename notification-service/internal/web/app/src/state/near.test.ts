import { expect, test } from 'vitest';

import { reportService } from '../api/client';
import { ok, report, serve } from '../testing/api';
import { boundingBox, reportsNear } from './near';

const box = (latitude: number, longitude: number) =>
  boundingBox({ latitude, longitude }, 150).split(',').map(Number) as [number, number, number, number];

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

test('the nearest comes first, whenever it was filed', async () => {
  const get = serve(reportService, 'GET', () =>
    ok({ reports: [report({ id: 'far', latitude: -6.6, longitude: 106.81 }), report({ id: 'near', latitude: -6.6, longitude: 106.801 })] }),
  );
  const found = await reportsNear({ latitude: -6.6, longitude: 106.8 }, 1_000, { status: ['pending'], limit: 20 });
  expect(found.map(({ id }) => id)).toEqual(['near', 'far']);
  expect(get.mock.calls[0]?.[1]?.params?.query).toMatchObject({
    status: ['pending'],
    limit: 20,
    bbox: expect.stringMatching(/^106\.79/) as string,
  });
});
