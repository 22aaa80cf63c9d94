import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { reportService } from '../../../api/client';
import { session } from '../../../state/session';
import { refused, serve } from '../../../testing/api';
import { settled } from '../../../testing/browser';
import { Router } from '../../../ui/router';
import { Areas } from './areas';

let root: HTMLElement;
let located: boolean;

const settings = () => ({
  type: 'FeatureCollection',
  languages: ['en', 'id'],
  located,
  features: [{ type: 'Feature', geometry: null, properties: { code: 'east', names: { en: 'East', id: 'Timur' } } }],
});
const running = { state: 'running', done: 300, total: 1000 };
const text = () => root.textContent;

async function show() {
  await act(() =>
    render(
      <Router>
        <Areas />
      </Router>,
      root,
    ),
  );
  await act(settled);
}

/** Chooses a file and sends it. */
async function upload(content: string) {
  const input = root.querySelector<HTMLInputElement>('input[type=file]')!;
  Object.defineProperty(input, 'files', { value: [new File([content], 'areas.geojson')], configurable: true });
  await act(async () => {
    input.dispatchEvent(new Event('change', { bubbles: true }));
    await settled();
  });
  await act(async () => {
    root.querySelector('form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
    await settled();
  });
}

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  located = true;
  session.value = { sub: 'a', name: 'A', role: 'operator', expires_at: '2030-01-01T00:00:00Z' };
  serve(reportService, 'GET', (path) => ({
    data: path === '/reports/areas' ? settings() : { schedules: [{ name: 'areas', latest: running }] },
    response: new Response(null, { status: 200, headers: { ETag: '"7"' } }),
  }));
});

afterEach(async () => {
  await act(() => render(null, root));
  session.value = undefined;
});

test('shows the areas in every language, and how far reports have moved', async () => {
  await show();
  expect([...root.querySelectorAll('tbody tr')].map(({ textContent }) => textContent)).toEqual(['eastEastTimur']);
  expect(root.querySelector('[role=status]')).toBeNull();
  await act(() => render(null, root));
  located = false;
  await show();
  expect(root.querySelector('[role=status]')!.textContent).toContain('300 of 1,000');
});

test('a file replaces the areas that were shown', async () => {
  const sent: unknown[] = [];
  serve(reportService, 'PUT', (path, { params, body, headers }) => {
    sent.push([path, params?.header?.['If-Match'], headers?.['Content-Type'], (body as File).name]);
    return { data: settings(), response: new Response(null, { status: 200 }) };
  });
  await show();
  await upload('{}');
  expect(sent).toEqual([['/reports/areas', '"7"', 'application/geo+json', 'areas.geojson']]);
});

test('each fault of a file is shown by the name of its area, and one without a code as the service says it', async () => {
  serve(reportService, 'PUT', () =>
    refused(400, 'invalid-input', [
      { pointer: '/features/0/geometry/coordinates/0/12', detail: 'feature 0: …', code: 'open' },
      { pointer: '/features/7', detail: 'feature 7: something new' },
    ]),
  );
  await show();
  await upload(gis);
  expect(text()).toContain('BOGOR BARAT: The border is not closed: its last point must be the first. (ring 1, point 13)');
  expect(text()).toContain('feature 7: something new');
});

const kecamatan = (code: number, name: string) => ({
  type: 'Feature',
  geometry: null,
  properties: { OBJECTID: 1, KODE_KEC: code, NAMOBJ: name, LUAS: 3.5 },
});
/** As a program of maps exports it. */
const gis = JSON.stringify({ type: 'FeatureCollection', features: [kecamatan(327101, 'BOGOR BARAT'), kecamatan(327102, 'BOGOR TIMUR')] });

test('codes and names come from the properties that are chosen', async () => {
  let sent = '';
  serve(reportService, 'PUT', (_, { body }) => {
    sent = body as string;
    return { data: settings(), response: new Response(null, { status: 200 }) };
  });
  await show();
  const input = root.querySelector<HTMLInputElement>('input[type=file]')!;
  Object.defineProperty(input, 'files', { value: [new File([gis], 'kecamatan.geojson')], configurable: true });
  await act(async () => {
    input.dispatchEvent(new Event('change', { bubbles: true }));
    await settled();
  });
  expect([...root.querySelectorAll('select')].map(({ value }) => value)).toEqual(['KODE_KEC', 'NAMOBJ', 'NAMOBJ']);
  await act(() => {
    const code = root.querySelector('select')!;
    code.value = 'NAMOBJ';
    code.dispatchEvent(new Event('change', { bubbles: true }));
  });
  expect(root.querySelector('fieldset')!.textContent).toContain('BOGOR-BARAT');
  await act(async () => {
    root.querySelector('form')!.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true }));
    await settled();
  });
  expect(JSON.parse(sent)).toEqual({
    type: 'FeatureCollection',
    features: ['BARAT', 'TIMUR'].map((side) => ({
      type: 'Feature',
      geometry: null,
      properties: { code: `BOGOR-${side}`, names: { en: `BOGOR ${side}`, id: `BOGOR ${side}` } },
    })),
  });
});

test('a file that is too large is not sent', async () => {
  let sent = 0;
  serve(reportService, 'PUT', () => {
    sent++;
    return refused(413, 'body-too-large');
  });
  await show();
  await upload(' '.repeat(5 * 1024 * 1024 + 1));
  expect(sent).toBe(0);
  expect(text()).toContain('5 MiB');
});
