import { describe, expect, test, vi } from 'vitest';

import { ok, refused } from '../testing/api';
import { Failure, must, whenUnauthenticated } from './client';

type Pending = Parameters<typeof must>[0];
const failure = (pending: Promise<unknown>) =>
  must(pending as Pending).then(
    () => expect.unreachable('it succeeded'),
    (error: Failure) => error,
  );

test('an answer is its body', async () => {
  expect(await must(Promise.resolve(ok({ id: 'r1' })) as Pending)).toEqual({ id: 'r1' });
});

describe('a failure', () => {
  test.each([
    ['no answer', () => Promise.reject(new TypeError('network')), 'no-answer', true],
    ['a refusal', () => Promise.resolve(refused(400, 'invalid-input')), 'invalid-input', false],
    ['a request that is being worked on', () => Promise.resolve(refused(409, 'request-running')), 'request-running', true],
    ['a service that is away', () => Promise.resolve(refused(503, 'unavailable')), 'unavailable', true],
    [
      'a gateway without a service',
      () => Promise.resolve({ error: '<html>', response: new Response(null, { status: 502 }) }),
      'unavailable',
      true,
    ],
    [
      'a gateway that refuses',
      () => Promise.resolve({ error: '<html>', response: new Response(null, { status: 413 }) }),
      'unavailable',
      false,
    ],
  ])('%s', async (_, pending, kind, uncertain) => {
    const error = await failure(pending());
    expect(error).toBeInstanceOf(Failure);
    expect([error.kind, error.uncertain]).toEqual([kind, uncertain]);
  });

  test('says what is wrong with a field', async () => {
    const error = await failure(Promise.resolve(refused(400, 'invalid-input', [{ pointer: '/title', detail: 'must be at most 200' }])));
    expect(error.fault('/title')).toBe('must be at most 200');
    expect(error.fault('/description')).toBeUndefined();
  });
});

test('an answer that knows no user reaches those whom it concerns', async () => {
  const ended = vi.fn();
  whenUnauthenticated(ended);
  await failure(Promise.resolve(refused(403, 'forbidden')));
  expect(ended).not.toHaveBeenCalled();
  await failure(Promise.resolve(refused(401, 'invalid-token')));
  expect(ended).toHaveBeenCalledOnce();
});
