import { signal } from '@preact/signals';
import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test } from 'vitest';

import { deferred } from '../testing/api';
import { settled } from '../testing/browser';
import type { Choice } from './choice';
import { Picker } from './picker';

test('a photo that is prepared says so until it is there', async () => {
  const root = document.createElement('div');
  document.body.replaceChildren(root);
  const prepared = deferred<void>();
  const choice = { list: signal([]), add: () => prepared.promise } as unknown as Choice;
  await act(() => render(<Picker choice={choice} free={5} hint={false} />, root));
  const said = () => root.querySelector('[role=status]')?.textContent;
  expect([said(), root.textContent]).toEqual(['', 'Add photos']);
  await act(() => void root.querySelector('input')!.dispatchEvent(new Event('change', { bubbles: true })));
  expect(said()).toBe('Preparing the photo …');
  await act(async () => {
    prepared.resolve();
    await settled();
  });
  expect(said()).toBe('');
});
