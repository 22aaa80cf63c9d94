import { afterEach, describe, expect, test } from 'vitest';

import { setLanguage } from '../lang/i18n';
import { ago, exactTime, now } from './time';

afterEach(() => setLanguage('en'));

const start = Date.UTC(2026, 5, 15, 12);
const before = (seconds: number) => new Date(start - seconds * 1000);

describe('how long ago', () => {
  test.each([
    [0, 'now'],
    [59, 'now'],
    [60, '1 minute ago'],
    [3_599, '59 minutes ago'],
    [3_600, '1 hour ago'],
    [86_399, '23 hours ago'],
    [86_400, 'yesterday'],
    [6 * 86_400, '6 days ago'],
    [7 * 86_400, 'last week'],
    [40 * 86_400, 'last month'],
    [400 * 86_400, 'last year'],
    [-120, 'now'], // a server's clock is ahead
  ])('%d s: %s', (seconds, want) => {
    now.value = start;
    expect(ago(before(seconds))).toBe(want);
  });

  test('is said again as time goes by, and in the chosen language', async () => {
    now.value = start;
    const date = before(60);
    now.value = start + 60_000;
    expect(ago(date)).toBe('2 minutes ago');
    await setLanguage('id');
    expect(ago(date)).toBe('2 menit yang lalu');
  });
});

test('the exact time is in the chosen language', async () => {
  const date = new Date(2026, 4, 3, 9, 5);
  expect(exactTime(date)).toMatch(/^May 3, 2026, 9:05\sAM$/);
  await setLanguage('id');
  expect(exactTime(date)).toBe('3 Mei 2026, 09.05');
});
