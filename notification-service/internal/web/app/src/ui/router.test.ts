import { beforeEach, describe, expect, test } from 'vitest';

import { go, href, route, setQuery } from './router';

/** Goes to a hash, as a link does. */
async function visit(hash: string): Promise<void> {
  const changed = new Promise((resolve) => window.addEventListener('hashchange', resolve, { once: true }));
  if (location.hash === hash) return;
  location.hash = hash;
  await changed;
}

beforeEach(() => visit('#/start'));

describe('an address', () => {
  test.each([
    ['#/', [], ''],
    ['#/reports/1', ['reports', '1'], ''],
    ['#/reports/1/?q=a', ['reports', '1'], 'q=a'],
    ['#ops/queues', ['ops', 'queues'], ''],
    ['#/?q=a%3Fb&status=pending,resolved', [], 'q=a%3Fb&status=pending%2Cresolved'],
  ])('%s is in parts', async (hash, path, query) => {
    await visit(hash);
    expect([route.value.path, route.value.query.toString()]).toEqual([path, query]);
  });

  test('is made of a path and a query', () => {
    expect(href('reports/1')).toBe('#/reports/1');
    expect(href('', { q: 'a b&c' })).toBe('#/?q=a+b%26c');
  });

  test('that was made is read back as it was', async () => {
    await visit(href('sign-in', { to: 'reports/1?x=#' }));
    expect(route.value.query.get('to')).toBe('reports/1?x=#');
  });
});

test('going somewhere is a step in the history, a filter is none', async () => {
  const steps = history.length;
  await visit('#/queue?status=pending&q=x');
  expect(history.length).toBe(steps + 1);
  setQuery({ status: 'resolved' });
  expect([location.hash, route.value.query.get('status'), history.length]).toEqual(['#/queue?status=resolved&q=x', 'resolved', steps + 1]);
  setQuery({ status: '', q: '' });
  expect(location.hash).toBe('#/queue');
  const changed = new Promise((resolve) => window.addEventListener('hashchange', resolve, { once: true }));
  go('mine');
  await changed;
  expect([route.value.path, history.length]).toEqual([['mine'], steps + 2]);
});
