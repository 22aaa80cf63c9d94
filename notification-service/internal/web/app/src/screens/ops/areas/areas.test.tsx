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
  await act(() => void input.dispatchEvent(new Event('change', { bubbles: true })));
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

test('each fault of a file is shown with its place', async () => {
  const detail = 'feature 3 ("east"), ring 0, point 12: the ring is not closed: the last point must be the first';
  serve(reportService, 'PUT', () => refused(400, 'invalid-input', [{ pointer: '/features/3/geometry/coordinates/0/12', detail }]));
  await show();
  await upload('{}');
  expect(text()).toContain(detail);
  expect(text()).toContain('/features/3/geometry/coordinates/0/12');
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
