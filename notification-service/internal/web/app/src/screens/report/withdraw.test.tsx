import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { Failure } from '../../api/client';
import { settled } from '../../testing/browser';
import { WithdrawForm } from './withdraw';

let root: HTMLElement;
const submit = () =>
  act(async () => {
    root.querySelector('form')!.requestSubmit();
    await settled();
  });

beforeEach(() => {
  root = document.createElement('div');
  document.body.append(root);
});

test('says what happens before it withdraws, and does it once', async () => {
  let answer = () => {};
  const withdraw = vi.fn(() => new Promise<void>((resolve) => (answer = resolve)));
  const onClose = vi.fn();
  await act(() => render(<WithdrawForm withdraw={withdraw} onClose={onClose} />, root));
  expect(root.textContent).toContain('deleted after 30 days');
  expect(root.textContent).toContain('cannot bring it back');
  expect(withdraw).not.toHaveBeenCalled();
  await submit();
  await submit();
  await act(async () => {
    answer();
    await settled();
  });
  expect(withdraw).toHaveBeenCalledTimes(1);
  expect(onClose).toHaveBeenCalledTimes(1);
});

test('says that it is too late', async () => {
  const withdraw = vi.fn(() => Promise.reject(new Failure({ type: 'about:blank#not-pending', title: 'Too late', status: 409 })));
  const onClose = vi.fn();
  await act(() => render(<WithdrawForm withdraw={withdraw} onClose={onClose} />, root));
  await submit();
  expect(root.textContent).toContain('can no longer be withdrawn');
  expect(onClose).not.toHaveBeenCalled();
});
