import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { reportService } from '../../api/client';
import { ok, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { Connections } from './connections';

let root: HTMLElement;
const show = async (departments: unknown[]) => {
  const at = { made_at: '2026-11-27T08:00:00Z', private: false };
  serve(reportService, 'GET', (path) =>
    ok(
      path === '/reports/departments'
        ? { departments }
        : {
            connections: [
              {
                ...at,
                id: '0198c0de-0000-7000-8000-000000000001',
                name: 'Work orders',
                department_id: 7,
                department_name: 'Lights',
                private: true,
              },
              { ...at, id: '0198c0de-0000-7000-8000-000000000002', name: 'Old system', revoked_at: '2026-11-28T08:00:00Z' },
            ],
          },
    ),
  );
  await act(() => render(<Connections />, root));
  await act(settled);
};

const fill = (selector: string, value: string) =>
  act(() => {
    const field = root.querySelector<HTMLInputElement | HTMLSelectElement>(selector)!;
    field.value = value;
    field.dispatchEvent(new Event(field.matches('select') ? 'change' : 'input', { bubbles: true }));
  });

const click = (name: string) =>
  act(async () => {
    [...root.querySelectorAll('button')].findLast((button) => button.textContent === name)!.click();
    await settled();
  });

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
});

afterEach(() => render(null, root));

test('a connection of a department is made, with its key shown once, and revoked', async () => {
  const make = serve(reportService, 'POST', () => ok({ id: '1', name: 'Orders', key: 'ccx_SECRET' }));
  const revoke = serve(reportService, 'DELETE', () => ok(undefined));
  await show([{ id: 7, code: 'lights', name: 'Lights', category_ids: [], routes: [] }]);
  expect(root.textContent).toContain('Lights');
  expect(root.textContent).toContain('The department was removed');
  await fill('input', ' Orders ');
  await fill('select', '7');
  await act(() => root.querySelector<HTMLInputElement>('input[type=checkbox]')!.click());
  await click('Make a key');
  expect(make.mock.lastCall![1].body).toEqual({ name: 'Orders', department_id: 7, private: true });
  expect(root.querySelector<HTMLInputElement>('dialog input')!.value).toBe('ccx_SECRET');
  await act(() => void root.querySelector('dialog')!.dispatchEvent(new Event('close')));
  await click('Revoke');
  expect(root.querySelector('dialog')!.textContent).toContain('Work orders can no longer read or change reports');
  await click('Revoke');
  expect(revoke.mock.lastCall![1].params!['path']).toEqual({ id: '0198c0de-0000-7000-8000-000000000001' });
});

test('a city without departments reads what to do first', async () => {
  await show([]);
  expect(root.textContent).toContain('make one first');
});
