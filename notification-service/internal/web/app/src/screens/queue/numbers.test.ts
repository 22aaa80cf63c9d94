import { expect, test } from 'vitest';

import type { PeriodNumbers } from '../../api/client';
import { backlog, durationOf, sum } from './numbers';

test('says a time in the unit that one would say', () => {
  expect([0, 90, 5400, 36 * 3600, 30 * 86_400].map(durationOf)).toEqual(['0 minutes', '1.5 minutes', '1.5 hours', '1.5 days', '30 days']);
});

test('what was open at the end of each period follows from the last one', () => {
  const unasked = { confirmed: 0, disputed: 0, silent: 0 };
  const numbers = [
    { ...unasked, begin: 'May', category_id: 1, filed: 5, resolved: 1, rejected: 1, reopened: 0 },
    { ...unasked, begin: 'May', category_id: 2, filed: 1, resolved: 0, rejected: 0, reopened: 0 },
    { ...unasked, begin: 'July', category_id: 1, filed: 0, resolved: 3, rejected: 0, reopened: 1 },
  ] satisfies PeriodNumbers[];
  expect(backlog(numbers, 12)).toEqual([
    ['May', 14],
    ['July', 12],
  ]);
  expect(backlog([], 3)).toEqual([]);
});

test('what reporters say of resolutions adds up as all else does', () => {
  const numbers = [
    { begin: 'May', category_id: 1, filed: 5, resolved: 4, rejected: 1, reopened: 0, confirmed: 1, disputed: 1, silent: 0 },
    { begin: 'June', category_id: 1, filed: 0, resolved: 1, rejected: 0, reopened: 1, confirmed: 1, disputed: 0, silent: 2 },
  ] satisfies PeriodNumbers[];
  expect(sum(numbers, ({ category_id }) => String(category_id))).toEqual([
    ['1', { filed: 5, resolved: 5, rejected: 1, confirmed: 2, disputed: 1, silent: 2 }],
  ]);
});
