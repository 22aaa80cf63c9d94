import { expect, test } from 'vitest';

import type { PeriodNumbers } from '../../api/client';
import { backlog, durationOf } from './numbers';

test('says a time in the unit that one would say', () => {
  expect([0, 90, 5400, 36 * 3600, 30 * 86_400].map(durationOf)).toEqual(['0 minutes', '1.5 minutes', '1.5 hours', '1.5 days', '30 days']);
});

test('what was open at the end of each period follows from the last one', () => {
  const numbers = [
    { begin: 'May', category_id: 1, filed: 5, resolved: 1, rejected: 1, reopened: 0 },
    { begin: 'May', category_id: 2, filed: 1, resolved: 0, rejected: 0, reopened: 0 },
    { begin: 'July', category_id: 1, filed: 0, resolved: 3, rejected: 0, reopened: 1 },
  ] satisfies PeriodNumbers[];
  expect(backlog(numbers, 12)).toEqual([
    ['May', 14],
    ['July', 12],
  ]);
  expect(backlog([], 3)).toEqual([]);
});
