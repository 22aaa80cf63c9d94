import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, describe, expect, test, vi } from 'vitest';

import { go, goBackTo, href, returnedTo, route, Router, setQuery } from './router';

const link = document.createElement('a');

/** Follows a link, as a reader does. */
async function visit(address: string): Promise<void> {
  link.href = address;
  await act(() => link.click());
}

/** Does something that goes to another entry of the history. */
async function travel(step: () => void): Promise<void> {
  const arrived = new Promise((resolve) => window.addEventListener('popstate', resolve, { once: true }));
  await act(async () => {
    step();
    await arrived;
  });
}

const address = () => location.pathname + location.search;

beforeEach(async () => {
  const root = document.createElement('div');
  document.body.replaceChildren(root, link);
  await act(() => render(<Router>{null}</Router>, root));
  await visit('/');
});

describe('an address', () => {
  test('has a path and a query', async () => {
    await visit('/reports/1?q=a&status=pending%2Cresolved');
    expect(route.value.path).toEqual(['reports', '1']);
    expect(Object.fromEntries(route.value.query)).toEqual({ q: 'a', status: 'pending,resolved' });
  });

  test('of the start has neither', () => {
    expect(route.value.path).toEqual([]);
    expect([...route.value.query]).toEqual([]);
  });

  test('is made from a path and a query', () => {
    expect(href('reports/1')).toBe('/reports/1');
    expect(href('sign-in', { to: 'reports/1' })).toBe('/sign-in?to=reports%2F1');
  });

  test('never leads to another host', () => {
    expect(href('/evil.example')).toBe('/evil.example');
    expect(href('/\\evil.example/x')).toBe('/evil.example/x');
  });
});

describe('going back', () => {
  test('finds the page where it was left; a new page begins at its top', async () => {
    await visit('/?status=pending');
    vi.stubGlobal('scrollY', 1_200);
    await visit('/reports/1');
    expect(returnedTo.value).toBeUndefined();
    vi.stubGlobal('scrollY', 30);
    await travel(() => history.back());
    expect([address(), returnedTo.value?.top]).toEqual(['/?status=pending', 1_200]);
    await travel(() => history.forward());
    expect([address(), returnedTo.value?.top]).toEqual(['/reports/1', 30]);
    await visit('/?status=pending'); // by a link: it is a new one
    expect(returnedTo.value).toBeUndefined();
  });

  test('to a list keeps its filters, if it led here', async () => {
    await visit('/?q=dark');
    await visit('/reports/1');
    await travel(() => goBackTo(''));
    expect(address()).toBe('/?q=dark');
    await visit('/mine');
    await visit('/reports/2');
    await act(() => goBackTo(''));
    expect([address(), returnedTo.value]).toEqual(['/', undefined]);
  });

  test('a filter that was set in between is part of the page', async () => {
    await visit('/?q=a');
    await act(() => setQuery({ q: 'ab' }));
    vi.stubGlobal('scrollY', 77);
    await visit('/reports/1');
    await travel(() => history.back());
    expect([address(), returnedTo.value?.top]).toEqual(['/?q=ab', 77]);
  });
});

test('going somewhere is a step in the history, a filter is none', async () => {
  const steps = history.length;
  await visit('/queue?status=pending&q=x');
  expect(history.length).toBe(steps + 1);
  await act(() => setQuery({ status: 'resolved' }));
  expect(address()).toBe('/queue?status=resolved&q=x');
  await act(() => setQuery({ status: '', q: '' }));
  expect([address(), history.length]).toEqual(['/queue', steps + 1]);
  await act(() => go('mine'));
  expect([address(), history.length]).toEqual(['/mine', steps + 2]);
});
