import { afterEach, expect, test } from 'vitest';

import { setLanguage } from '../../lang/i18n';
import { session } from '../../state/session';
import { actorName, changesOf } from './audit';

afterEach(() => setLanguage('en'));

test('what was changed of a setting stands there in words of either language', async () => {
  const calendar = { holidays_added: ['2026-12-25'], targets: [2, 3], weekdays: [0, 1], zone: 'Asia/Jakarta' };
  expect(changesOf(calendar)).toEqual([
    ['new holidays', '2026-12-25'],
    ['targets of the categories', '2, 3'],
    ['hours of', 'Sunday, Monday'],
    ['time zone', 'Asia/Jakarta'],
  ]);
  expect(changesOf({ added: 0, changed: 1, retired: 0, moved: true })).toEqual([
    ['changed', '1'],
    ['in another order', ''],
  ]);
  await setLanguage('id');
  expect(changesOf({ removed: [8] })).toEqual([['dihapus', '8']]);
});

test('an operator has a name, unless it is not known', () => {
  session.value = { sub: 'pavel', name: 'Pavel', role: 'operator', expires_at: '2030-01-01T00:00:00Z' };
  expect([actorName('pavel', 'Pavel'), actorName('u-1', 'Olga'), actorName('u-1')]).toEqual(['by you', 'by Olga', 'by u-1']);
});
