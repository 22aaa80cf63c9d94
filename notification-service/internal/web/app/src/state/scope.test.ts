import { beforeEach, expect, test } from 'vitest';

import { reportService, type Department } from '../api/client';
import { lightsAlone, ok, refused, serve, wholeCity } from '../testing/api';
import { moderates, ownOf, scope, worksOn } from './scope';

const all = [1, 2].map((id): Department => ({ id, code: `d${id}`, name: `Department ${id}`, category_ids: [], routes: [] }));

beforeEach(() => {
  scope.value = undefined;
});

test('officials of the whole city work on every report, and are asked about once', async () => {
  const get = serve(reportService, 'GET', () => ok(wholeCity));
  expect([moderates(), await worksOn('r1'), await worksOn('r2'), moderates()]).toEqual([false, true, true, true]);
  expect(get.mock.calls.map(([path]) => path)).toEqual(['/reports/me']);
  expect(ownOf(all)).toEqual(all);
});

test.each([
  [ok({}), true],
  [refused(403, 'other-department'), false],
  [refused(404, 'not-found'), false],
])('officials of departments work on their own reports: %#', async (answer, works) => {
  serve(reportService, 'GET', (path) => (path === '/reports/me' ? ok(lightsAlone) : answer));
  expect([await worksOn('r1'), moderates(), ownOf(all)]).toEqual([works, false, [all[0]]]);
});

test('a failure does not say whose a report is', async () => {
  serve(reportService, 'GET', (path) => (path === '/reports/me' ? ok(lightsAlone) : refused(503, 'unavailable')));
  await expect(worksOn('r1')).rejects.toThrow('unavailable');
});
