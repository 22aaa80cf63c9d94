import { expect, test } from 'vitest';

import { durationOf } from './numbers';

test('says a time in the unit that one would say', () => {
  expect([0, 90, 5400, 36 * 3600, 30 * 86_400].map(durationOf)).toEqual(['0 minutes', '1.5 minutes', '1.5 hours', '1.5 days', '30 days']);
});
