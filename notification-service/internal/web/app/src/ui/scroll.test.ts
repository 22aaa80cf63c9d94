import { beforeEach, describe, expect, test, vi } from 'vitest';

import { readingPosition, restoreReadingPosition } from './scroll';

/** Draws links at these places in the window. */
function draw(tops: Record<string, number>): void {
  const nav = Object.assign(document.createElement('a'), { href: '/nav' });
  document.body.replaceChildren(nav, document.createElement('main'));
  for (const [href, top] of Object.entries(tops)) {
    const link = Object.assign(document.createElement('a'), { href });
    vi.spyOn(link, 'getBoundingClientRect').mockReturnValue({ top } as DOMRect);
    document.querySelector('main')?.append(link);
  }
}

const scrollTo = vi.fn();
const scrollBy = vi.fn();

beforeEach(() => {
  vi.clearAllMocks();
  vi.stubGlobal('scrollTo', scrollTo);
  vi.stubGlobal('scrollBy', scrollBy);
  vi.stubGlobal('scrollY', 500);
});

test('the position is the first visible link of the content', () => {
  draw({ '/reports/1': -80, '/reports/2': 20, '/reports/3': 100 });
  document.querySelector<HTMLElement>('a[href="/reports/3"]')?.focus();
  expect(readingPosition()).toEqual({ top: 500, link: { href: '/reports/2', top: 20 }, focus: '/reports/3' });
});

describe('going back', () => {
  test('puts the same link at the same place, and the focus back', () => {
    draw({ '/reports/1': 10, '/reports/2': 70 });
    expect(restoreReadingPosition({ top: 500, link: { href: '/reports/2', top: 20 }, focus: '/reports/1' })).toBe(true);
    expect(scrollTo).toHaveBeenCalledWith(0, 500);
    expect(scrollBy).toHaveBeenCalledWith(0, 50);
    expect(document.activeElement?.getAttribute('href')).toBe('/reports/1');
  });

  test('goes by the window alone where the link is gone', () => {
    draw({ '/reports/1': 10 });
    expect(restoreReadingPosition({ top: 500, link: { href: '/reports/9', top: 20 }, focus: '/reports/9' })).toBe(false);
    expect(scrollTo).toHaveBeenCalledWith(0, 500);
    expect(scrollBy).not.toHaveBeenCalled();
  });
});
