import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test } from 'vitest';

import { deferred } from '../testing/api';
import { lazily } from './lazily';

const Loaded = () => <p>here</p>;

test('rows stand in for what is loaded, and nothing for what is bare', async () => {
  for (const bare of [false, true]) {
    const code = deferred<typeof Loaded>();
    const Lazy = lazily(() => code.promise, bare);
    const root = document.createElement('div');
    await act(() => render(<Lazy />, root));
    expect(root.querySelector('.skeleton') !== null).toBe(!bare);
    expect(root.textContent).toBe('');
    await act(async () => {
      code.resolve(Loaded);
      await code.promise;
    });
    expect(root.textContent).toBe('here');
  }
});

test('code that does not come is said to be missing', async () => {
  const Lazy = lazily(() => Promise.reject<typeof Loaded>(new Error('offline')), true);
  const root = document.createElement('div');
  await act(() => render(<Lazy />, root));
  await act(() => Promise.resolve());
  expect(root.textContent).not.toBe('');
});
