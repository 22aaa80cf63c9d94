import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { notificationService, reportService } from '../../api/client';
import { ok, refused, serve } from '../../testing/api';
import { settled } from '../../testing/browser';

const signOut = vi.hoisted(() => vi.fn(() => Promise.resolve()));
vi.mock('../../shell/menu', () => ({ signOut }));

import { EraseAccount } from './erase';

let root: HTMLElement;
const press = (name: string) =>
  act(async () => {
    [...root.querySelectorAll('button')].find((button) => (button.ariaLabel ?? button.textContent) === name)!.click();
    await settled();
  });

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  HTMLDialogElement.prototype.showModal = vi.fn(); // jsdom has no modal dialogs
});

test('an account is erased in both services once that was asked twice, and what was done is not done again', async () => {
  const reports = serve(reportService, 'DELETE', () => ok(undefined));
  let away = true;
  const rest = serve(notificationService, 'DELETE', () => (away ? refused(503, 'unavailable') : ok(undefined)));
  await act(() => render(<EraseAccount />, root));
  await press('Erase my account …');
  expect(root.textContent).toContain('nothing says that they were yours');
  await press('Close');
  await press('Erase my account …');
  await press('Erase');
  expect([root.textContent, reports.mock.calls.length]).toEqual([expect.stringContaining('Erase it for ever?'), 0]);
  await press('Erase for ever');
  expect([root.textContent, signOut.mock.calls.length]).toEqual([expect.stringContaining('busy or away'), 0]);
  away = false;
  await press('Erase for ever');
  expect([reports.mock.calls.map(([path]) => path), rest.mock.lastCall?.[0]]).toEqual([['/reports/mine/data'], '/me/data']);
  expect(signOut).toHaveBeenCalledTimes(1);
});
