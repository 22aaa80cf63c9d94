import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { reportService } from '../../api/client';
import { setLanguage } from '../../lang/console';
import { categories } from '../../state/categories';
import { session } from '../../state/session';
import { toasts } from '../../state/toasts';
import { category, ok, refused, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { Assets } from './assets';

let root: HTMLElement;
const lamps = { layer: 'lamps', category_id: 2, count: 3, changed_at: '2026-11-28T10:00:00Z' };
const press = (name: string, within: Element = root) =>
  act(async () => {
    [...within.querySelectorAll('button')].find(({ textContent }) => textContent === name)!.click();
    await settled();
  });

async function upload(name: string) {
  const [layer, file] = root.querySelectorAll<HTMLInputElement>('form input');
  layer!.value = 'bins';
  layer!.dispatchEvent(new Event('input', { bubbles: true }));
  const select = root.querySelector('select')!;
  select.value = '2';
  select.dispatchEvent(new Event('change', { bubbles: true }));
  Object.defineProperty(file, 'files', { value: [new File(['code,lat,lng'], name)], configurable: true });
  await act(() => void file!.dispatchEvent(new Event('change', { bubbles: true })));
  await act(async () => {
    root.querySelector('form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
    await settled();
  });
}

beforeEach(async () => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  HTMLDialogElement.prototype.showModal = vi.fn();
  session.value = { sub: 'a', name: 'A', role: 'operator', expires_at: '2030-01-01T00:00:00Z' };
  categories.value = [category()];
  serve(reportService, 'GET', () => ok({ layers: [lamps] }));
  await setLanguage('en');
  await act(() => render(<Assets />, root));
  await act(settled);
});

test('a file replaces a layer, and the page says what that changed', async () => {
  expect(root.textContent).toContain('lamps3 thingsStreet lights and signals');
  const put = serve(reportService, 'PUT', () => ok({ ...lamps, layer: 'bins', added: 2, changed: 1, removed: 4 }));
  await upload('bins.csv');
  expect(put.mock.lastCall).toMatchObject([
    '/reports/assets/{layer}',
    { params: { path: { layer: 'bins' }, query: { category: 2 } }, headers: { 'Content-Type': 'text/csv' } },
  ]);
  expect(toasts.value.at(-1)?.text).toBe('The layer has 3 things: 2 new, 1 changed, 4 removed.');
  await upload('bins.geojson');
  expect(put.mock.lastCall?.[1]).toMatchObject({ headers: { 'Content-Type': 'application/geo+json' } });
});

test('each fault is named by its record, in the reader’s language', async () => {
  serve(reportService, 'PUT', () =>
    refused(400, 'invalid-input', [
      { pointer: '/lines/18', code: 'code-twice', detail: 'record 17 ("L-17"): code must not be that of record 3' },
      { pointer: '/lines/19', code: 'swapped', detail: 'record 18: latitude and longitude must not be swapped' },
      { pointer: '', code: 'another', detail: 'must be something else' },
    ]),
  );
  await upload('bins.csv');
  const faults = () => [...root.querySelectorAll('.faults li')].map(({ textContent }) => textContent);
  expect(faults()).toEqual([
    'Record 17 “L-17”: Another record has the same code.',
    'Record 18: Latitude and longitude are swapped.',
    'must be something else',
  ]);
  await act(() => setLanguage('id'));
  expect(faults()[0]).toBe('Data 17 “L-17”: Data lain memakai kode yang sama.');
});

test('a layer is removed once that is confirmed, by a file without things', async () => {
  const put = serve(reportService, 'PUT', () => ok({ ...lamps, count: 0, added: 0, changed: 0, removed: 3 }));
  await press('Remove');
  expect([root.querySelector('dialog')?.textContent.includes('lamps: 3 things'), put.mock.calls.length]).toEqual([true, 0]);
  await press('Remove', root.querySelector('dialog')!);
  expect(put.mock.lastCall).toMatchObject(['/reports/assets/{layer}', { params: { path: { layer: 'lamps' }, query: { category: 2 } } }]);
  expect(root.querySelector('dialog')).toBeNull();
});

test('sheets of codes follow one another', async () => {
  const next = '/reports/assets/lamps/sheet?after=L-12';
  vi.stubGlobal(
    'fetch',
    async (sheet: string) => new Response('<svg/>', sheet === next ? {} : { headers: { Link: `<${next}>; rel="next"` } }),
  );
  await press('Sheets of codes');
  const shown = () => root.querySelector('dialog img')?.getAttribute('src');
  expect(shown()).toBe('/reports/assets/lamps/sheet');
  await vi.waitFor(() => expect(root.querySelector('dialog')?.textContent).toContain('Next sheet'));
  await press('Next sheet');
  await vi.waitFor(() => expect(root.querySelector('dialog')?.textContent).not.toContain('Next sheet'));
  expect([shown(), root.querySelector('dialog a.primary')?.getAttribute('href')]).toEqual([next, next]);
});

test('auditors read the layers and change nothing', async () => {
  session.value = { ...session.value!, role: 'auditor' };
  await act(() => render(null, root));
  await act(() => render(<Assets />, root));
  await act(settled);
  expect([root.textContent.includes('lamps'), root.querySelector('button, form')]).toEqual([true, null]);
});
