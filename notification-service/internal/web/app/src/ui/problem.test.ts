import { expect, test } from 'vitest';

import { Failure } from '../api/client';
import { explain } from './problem';

const problem = (kind: string, status: number) => new Failure({ type: `#${kind}`, title: kind, status });

test('what is missing is called by its name', () => {
  expect(explain(problem('not-found', 404))).toBe('There is no such report.');
  expect(explain(problem('not-found', 404), 'message')).toBe('There is no such message.');
});

test('a failure says whether the server answered', () => {
  expect(explain(new Failure())).toContain('did not answer');
  expect(explain(problem('unavailable', 503), 'message')).toContain('busy or away');
});
