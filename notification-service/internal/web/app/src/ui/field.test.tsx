import { render } from 'preact';
import { expect, test } from 'vitest';

import { Field } from './field';

test('a line that is no longer required takes everything', () => {
  const root = document.createElement('div');
  const draw = (required: boolean) => render(<Field label="Why" required={required} value="" onValue={() => {}} />, root);
  draw(true);
  const input = root.querySelector('input')!;
  input.value = '  ';
  expect(input.checkValidity()).toBe(false);
  draw(false);
  input.value = 'Dark';
  expect(input.checkValidity()).toBe(true);
});
