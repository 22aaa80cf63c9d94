import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { reportService } from '../../api/client';
import { session } from '../../state/session';
import { ok, refused, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { Open311 } from './open311';

let root: HTMLElement;
const show = async () => {
  await act(() => render(<Open311 />, root));
  await act(settled);
};

const click = (name: string) =>
  act(async () => {
    [...root.querySelectorAll('button')].findLast((button) => button.textContent === name)!.click();
    await settled();
  });

const keys = (enabled: boolean) => ({
  enabled,
  keys: [
    { id: '0198c0de-0000-7000-8000-000000000001', name: 'FixMyStreet', made_at: '2026-11-27T08:00:00Z', reports: 12 },
    {
      id: '0198c0de-0000-7000-8000-000000000002',
      name: 'Old app',
      made_at: '2026-01-27T08:00:00Z',
      revoked_at: '2026-02-01T08:00:00Z',
      reports: 3,
    },
  ],
});

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
});

afterEach(() => {
  render(null, root);
  session.value = undefined;
});

test('a key is made, shown once, and revoked', async () => {
  serve(reportService, 'GET', () => ok(keys(true)));
  const make = serve(reportService, 'POST', () => ok({ ...keys(true).keys[0], key: 'o311_SECRET' }));
  const revoke = serve(reportService, 'DELETE', () => ok(undefined));
  await show();
  expect(root.textContent).toContain('FixMyStreet');
  expect(root.textContent).toContain('reports: 12');
  expect(root.textContent).not.toContain('OPEN311=on');
  const input = root.querySelector('input')!;
  await act(() => {
    input.value = ' Klarschiff ';
    input.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await click('Make a key');
  expect(make.mock.lastCall![1].body).toEqual({ name: 'Klarschiff' });
  expect(root.querySelector<HTMLInputElement>('dialog input')!.value).toBe('o311_SECRET');
  await act(() => void root.querySelector('dialog')!.dispatchEvent(new Event('close')));
  expect(root.innerHTML).not.toContain('o311_SECRET');
  await click('Revoke');
  expect(root.querySelector('dialog')!.textContent).toContain('FixMyStreet can no longer file reports');
  await click('Revoke');
  expect(revoke.mock.lastCall![1].params!['path']).toEqual({ id: '0198c0de-0000-7000-8000-000000000001' });
  expect(root.querySelector('dialog')).toBeNull();
});

test('an auditor reads the keys and changes none; a city that takes no part is named', async () => {
  session.value = { sub: 'aud', name: 'Aud', role: 'auditor' } as typeof session.value;
  serve(reportService, 'GET', () => ok(keys(false)));
  await show();
  expect(root.textContent).toContain('OPEN311=on');
  expect(root.querySelectorAll('button, input')).toHaveLength(0);
});

test('a refusal is shown', async () => {
  serve(reportService, 'GET', () => refused(403, 'forbidden'));
  await show();
  expect(root.querySelector('[role=alert]')).not.toBeNull();
});
