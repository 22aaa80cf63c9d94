import type { Signal } from '@preact/signals';
import { beforeEach, describe, expect, test, vi } from 'vitest';

import { stubDigest } from '../testing/browser';

/** A page that has just been loaded, and what it keeps. */
async function begin(user?: string) {
  vi.resetModules();
  const storage = await import('./storage');
  const draft: Signal<string> = storage.userData('draft', () => '');
  const followed: Signal<string[]> = storage.userData('followed', () => []);
  if (user) await storage.openUserData(user);
  return { ...storage, draft, followed };
}

/** Everything that the browser keeps, as who looks into it would see it. */
const stored = () => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]);

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  stubDigest();
});

test("a user's data survives a reload", async () => {
  const before = await begin('maria');
  before.draft.value = 'My neighbour';
  before.followed.value = ['r1'];
  const page = await begin('maria');
  expect([page.draft.value, page.followed.value]).toEqual(['My neighbour', ['r1']]);
});

test('what is asked for late is the same', async () => {
  (await begin('maria')).draft.value = 'My neighbour';
  const page = await begin('maria');
  expect(page.userData('draft', () => '').value).toBe('My neighbour');
});

describe('what a user wrote', () => {
  test('is removed when another user signs in', async () => {
    (await begin('maria')).draft.value = 'My neighbour';
    const page = await begin('james');
    expect([page.draft.value, page.followed.value]).toEqual(['', []]);
    expect(stored()).not.toContain('My neighbour');
    expect((await begin('maria')).draft.value).toBe('');
  });

  test('is removed at sign-out', async () => {
    const page = await begin('maria');
    page.draft.value = 'My neighbour';
    page.removeUserData();
    expect([page.draft.value, localStorage.length]).toEqual(['', 0]);
  });

  test('is not written back by a tab that does not know of the sign-out yet', async () => {
    const late = await begin('maria');
    late.draft.value = 'My neigh';
    (await begin('maria')).removeUserData();
    late.draft.value = 'My neighbour';
    expect(localStorage.length).toBe(0);
    const page = await begin('james');
    late.draft.value = 'My neighbour, again';
    expect(page.draft.value).toBe('');
    expect(stored()).not.toContain('neighbour');
  });

  test('is not shown after the session ended by itself, but is there for the same user', async () => {
    const page = await begin('maria');
    page.draft.value = 'My neighbour';
    page.closeUserData();
    expect(page.draft.value).toBe('');
    expect(JSON.stringify({ ...sessionStorage })).not.toContain('neighbour');
    expect((await begin('maria')).draft.value).toBe('My neighbour');
  });

  test('is stored under no name', async () => {
    (await begin('maria.delgado')).draft.value = 'x';
    expect(stored()).not.toContain('maria');
  });

  test('is not taken from an earlier version of the page, which did not say whose it is', async () => {
    localStorage.setItem('cityconnect.draft', '"My neighbour"');
    localStorage.setItem('cityconnect.followed', '["r1"]');
    const page = await begin('maria');
    expect([page.draft.value, page.followed.value]).toEqual(['', []]);
    expect(stored()).not.toContain('neighbour');
  });

  test('lasts until the page is closed where users cannot be told apart: by plain HTTP from another host', async () => {
    vi.stubGlobal('crypto', { getRandomValues: crypto.getRandomValues.bind(crypto) });
    const page = await begin('maria');
    page.draft.value = 'My neighbour';
    expect(page.draft.value).toBe('My neighbour');
    expect(stored()).not.toContain('neighbour');
    page.closeUserData();
    expect(page.draft.value).toBe('');
  });
});

describe('what somebody wrote who is not signed in', () => {
  test('survives a reload of the tab', async () => {
    (await begin()).draft.value = 'A lamp is dark';
    expect((await begin()).draft.value).toBe('A lamp is dark');
    expect(JSON.stringify({ ...localStorage })).not.toContain('lamp');
  });

  test.each(['sign-in', 'sign-out'])('ends at the %s of somebody', async (when) => {
    (await begin()).draft.value = 'A lamp is dark';
    const page = await begin(when === 'sign-in' ? 'james' : undefined);
    if (when === 'sign-out') page.removeUserData();
    expect(page.draft.value).toBe('');
    expect(stored()).not.toContain('lamp');
    page.closeUserData();
    expect(page.draft.value).toBe('');
  });
});

test('settings belong to the browser', async () => {
  const maria = await begin('maria');
  maria.browserSetting<string>('theme', 'auto').value = 'dark';
  maria.removeUserData();
  expect((await begin('james')).browserSetting('theme', 'auto').value).toBe('dark');
});

test('where storage is forbidden everything lasts until the page is closed', async () => {
  vi.spyOn(Storage.prototype, 'getItem').mockImplementation(() => {
    throw new DOMException('denied', 'SecurityError');
  });
  vi.spyOn(Storage.prototype, 'setItem').mockImplementation(() => {
    throw new DOMException('denied', 'SecurityError');
  });
  const page = await begin('maria');
  page.draft.value = 'My neighbour';
  expect(page.draft.value).toBe('My neighbour');
});
