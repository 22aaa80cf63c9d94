import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { Failure } from '../../api/client';
import { report } from '../../testing/api';
import { settled } from '../../testing/browser';
import { CorrectForm } from './correct';

let root: HTMLElement;
const write = (field: string, value: string) =>
  act(() => {
    const input = root.querySelector<HTMLInputElement>(field)!;
    input.value = value;
    input.dispatchEvent(new Event('input', { bubbles: true }));
  });
const submit = () =>
  act(async () => {
    root.querySelector('form')!.requestSubmit();
    await settled();
  });
const save = () => root.querySelector<HTMLButtonElement>('form > button')!;

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
});

test('only what was changed is sent, and nothing where nothing was', async () => {
  const correct = vi.fn(() => Promise.resolve());
  const onClose = vi.fn();
  await act(() => render(<CorrectForm report={report({ description: 'Since Monday' })} correct={correct} onClose={onClose} />, root));
  expect(save().disabled).toBe(true);
  await write('textarea', 'Since Sunday ');
  await submit();
  expect(correct.mock.calls).toEqual([[{ description: 'Since Sunday' }]]);
  expect(onClose).toHaveBeenCalledTimes(1);
});

test('a report that officials work on says that it is too late, and keeps what was written', async () => {
  const correct = () => Promise.reject(new Failure({ type: 'about:blank#not-pending', title: 'Too late', status: 409 }));
  await act(() => render(<CorrectForm report={report()} correct={correct} onClose={() => {}} />, root));
  await write('input', 'Two lamps');
  await submit();
  expect(root.textContent).toContain('can no longer be withdrawn or corrected');
  expect([root.querySelector('input')!.value, save().disabled]).toEqual(['Two lamps', false]);
});
