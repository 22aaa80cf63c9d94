import { signal } from '@preact/signals';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import type { Category } from '../api/client';
import { category, deferred, report, serve } from '../testing/api';
import { settled } from '../testing/browser';

/** A page that has just begun. */
let page: typeof import('./categories') & typeof import('./preferences');
beforeEach(async () => {
  vi.resetModules();
  vi.useFakeTimers();
  page = { ...(await import('./categories')), ...(await import('./preferences')) };
});
afterEach(() => {
  page.preferences.language.value = '';
  vi.useRealTimers();
});

const answer = (tag: string, ...all: Category[]) => ({
  data: { categories: all },
  response: new Response(null, { status: 200, headers: { ETag: tag } }),
});
const lamps = category({ id: 2, name: 'Lamps' });
/** Answers in turn; the last one for good. */
const serveLists = async (...answers: ReturnType<typeof answer>[]) => {
  const { reportService } = await import('../api/client');
  return serve(reportService, 'GET', () => (answers.length > 1 ? answers.shift()! : answers[0]!));
};

test('the first list is the one that was asked for before the script was there', async () => {
  const asked = await serveLists(answer('"2"', lamps));
  globalThis.earlyCategories = Promise.resolve(Response.json({ categories: [lamps] }));
  await page.loadCategories();
  expect([page.categories.value, asked.mock.calls.length]).toEqual([[lamps], 0]);
  await page.loadCategories();
  expect(asked).toHaveBeenCalledOnce();
});

test.each([undefined, new Response('', { status: 503 })])('an early answer of no use is asked for again', async (early) => {
  const asked = await serveLists(answer('"1"', lamps));
  globalThis.earlyCategories = Promise.resolve(early);
  await page.loadCategories();
  expect([page.categories.value, asked.mock.calls.length]).toEqual([[lamps], 1]);
});

test('names are those of the chosen language, whichever answer comes last', async () => {
  const { reportService } = await import('../api/client');
  const slow = deferred<ReturnType<typeof answer>>();
  const asked = serve(reportService, 'GET', (_, { headers }) => (headers ? answer('"id"', category({ name: 'Lampu' })) : slow.promise));
  page.keepCategories(() => '');
  const first = page.loadCategories();
  page.preferences.language.value = 'id';
  await settled();
  slow.resolve(answer('"en"', lamps));
  await first;
  expect(page.categories.value.map(({ name }) => name)).toEqual(['Lampu']);
  expect(asked.mock.calls.at(-1)).toEqual([
    '/categories',
    { params: { query: { include: 'retired' } }, headers: { 'Accept-Language': 'id' } },
  ]);
});

test('the list is asked for again with another place, and what has not changed is not drawn again', async () => {
  const asked = await serveLists(answer('"1"', lamps), answer('"1"', { ...lamps }), answer('"2"', category({ name: 'Street lamps' })));
  const place = signal('');
  page.keepCategories(() => place.value);
  await page.loadCategories();
  const shown = page.categories.value;
  place.value = 'mine';
  await settled();
  expect(asked).toHaveBeenCalledOnce(); // it was asked for just now
  vi.advanceTimersByTime(3_000);
  place.value = '';
  await settled();
  expect([asked.mock.calls.length, page.categories.value === shown]).toEqual([2, true]);
  vi.advanceTimersByTime(3_000);
  document.dispatchEvent(new Event('visibilitychange'));
  await settled();
  expect(page.categories.value[0]?.name).toBe('Street lamps');
});

test('a report has the present name of its category, and one that nobody knows yet makes the list be asked for once', async () => {
  const asked = await serveLists(answer('"1"', lamps), answer('"2"', lamps, category({ id: 9, name: 'Sinkholes' })));
  await page.loadCategories();
  expect(page.categoryName(report({ category_id: 2, category_name: 'As it was called' }))).toBe('Lamps');
  const fresh = report({ category_id: 9, category_name: 'Lubang' });
  expect([page.categoryName(fresh), page.categoryName(fresh)]).toEqual(['Lubang', 'Lubang']);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(page.categoryName(fresh)).toBe('Sinkholes');
  expect(asked).toHaveBeenCalledTimes(2);
});

test('retired categories are known, but nothing new has them', async () => {
  await serveLists(answer('"1"', lamps, category({ id: 1, name: 'Old', retired: true })));
  await page.loadCategories();
  expect(page.inUse.value).toEqual([lamps]);
  expect(page.categoryName(report({ category_id: 1 }))).toBe('Old');
});
