import { expect, test } from 'vitest';

import { reference } from './reference';

// report-service's test has the same pairs.
test.each([
  ['0198c0de-0000-7000-8000-000000000000', '0000-0000'],
  ['0198c0de-0000-7000-8000-00ffffffffff', 'ZZZZ-ZZZZ'],
  ['0198c0de-0000-7000-8000-ab0123456789', '04HM-ASW9'],
])('%s is called %s', (id, want) => expect(reference(id)).toBe(want));
