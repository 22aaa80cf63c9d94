import { describe, expect, test } from 'vitest';

import { isAhead, furthest } from './position';

describe('isAhead', () => {
  test.each([
    ['the next event', 'v1.a.8', 'v1.a.7', true],
    ['the same event', 'v1.a.7', 'v1.a.7', false],
    ['an earlier event', 'v1.a.6', 'v1.a.7', false],
    ['numbers, not words', 'v1.a.10', 'v1.a.9', true],
    ['nothing was counted yet', 'v1.a.1', '', true],
    ['the stream started over', 'v1.b.1', 'v1.a.7', true],
    ['only the second of two streams moved', 'v1.a.7.r.3', 'v1.a.7.r.2', true],
    ['neither of two streams moved', 'v1.a.7.r.3', 'v1.a.7.r.3', false],
    ['one of two streams started over', 'v1.a.7.s.1', 'v1.a.7.r.9', true],
  ])('%s: %s after %s is %s', (_, id, other, want) => expect(isAhead(id, other)).toBe(want));
});

describe('furthest', () => {
  test.each([
    ['v1.a.7', 'v1.a.9', 'v1.a.9'],
    ['v1.a.9', 'v1.a.7', 'v1.a.9'],
    // Two tabs may each be ahead in another stream.
    ['v1.a.9.r.2', 'v1.a.7.r.5', 'v1.a.9.r.5'],
    // A stream that started over counts from its own beginning.
    ['v1.b.1', 'v1.a.9', 'v1.b.1'],
    ['v1.a.7', '', 'v1.a.7'],
  ])('of %s and %s is %s', (id, other, want) => expect(furthest(id, other)).toBe(want));

  test('is never behind either', () => {
    const [one, two] = ['v1.a.4.r.9', 'v1.a.6.r.3'];
    const most = furthest(one, two);
    expect(isAhead(one, most)).toBe(false);
    expect(isAhead(two, most)).toBe(false);
  });
});
