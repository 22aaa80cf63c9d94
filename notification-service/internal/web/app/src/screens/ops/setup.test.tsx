import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test } from 'vitest';

import { notificationService, reportService } from '../../api/client';
import { config } from '../../state/config';
import { session } from '../../state/session';
import { ok, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { Router } from '../../ui/router';
import { Setup } from './setup';

let root: HTMLElement;
let setup: { done: string[]; log_archived_at?: string; metrics_read_at?: string };
let city: Record<string, unknown>;
let revision: string;

const answer = (data: unknown, tag = '"1"') => ({ data, response: new Response(null, { headers: { ETag: tag } }) });
const round = { zone: 'UTC', shifts: [0, 1, 2, 3, 4, 5, 6].map((day) => ({ day, from: '00:00', to: '24:00' })), holidays: [], targets: [] };
const states = () => Object.fromEntries([...root.querySelectorAll<HTMLElement>('li')].map(({ dataset }) => [dataset.step, dataset.state]));
const show = async () => {
  await act(() => render(<Router>{<Setup />}</Router>, root));
  await act(settled);
};
const click = async (name: string) => {
  await act(async () => {
    [...root.querySelectorAll('button')]
      .find((each) => (each.ariaLabel ?? each.getAttribute('aria-label') ?? each.textContent) === name)!
      .click();
    for (let i = 0; i < 3; i++) await settled();
  });
  await act(settled);
};

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  session.value = { sub: 'o', name: 'Oskar', role: 'operator', expires_at: '2030-01-01T00:00:00Z' };
  setup = { done: [] };
  revision = '"1"';
  city = {
    '/reports/departments': { departments: [] },
    '/reports/areas': { features: [] },
    '/reports/calendar': round,
    '/admin/reports/people': { people: [] },
  };
  Object.assign(config, { auth: { mode: 'dev' }, map: {}, mails: true, city: undefined });
  serve(reportService, 'GET', (path) => answer(city[path] ?? {}, path === '/reports/categories' ? revision : undefined));
  serve(notificationService, 'GET', (path) => (path === '/admin/setup' ? ok(setup) : ok('')));
  serve(notificationService, 'PUT', (_, { body }) => {
    setup = { ...setup, ...(body as typeof setup) };
    return ok(setup);
  });
});

test('a city that has nothing needs everything, in order', async () => {
  await show();
  expect(Object.keys(states())).toEqual(
    'identity_provider mail name languages map categories departments areas calendar official backup alerts'.split(' '),
  );
  expect(new Set(Object.values(states()))).toEqual(new Set(['missing']));
  expect(root.querySelector('[role=status]')?.textContent).toBe('0 of 12');
});

test('what the services know is there, and the rest is ticked by hand', async () => {
  const now = new Date().toISOString();
  setup = { done: [], log_archived_at: now, metrics_read_at: '2020-01-01T00:00:00Z' };
  revision = 'W/"2"';
  city = {
    '/reports/departments': { departments: [{}] },
    '/reports/areas': { features: [{}] },
    '/reports/calendar': { ...round, zone: 'Asia/Jakarta' },
    '/admin/reports/people': { people: [{ role: 'official' }] },
  };
  Object.assign(config, {
    auth: { mode: 'oidc' },
    map: { tiles: '/t', bounds: [0, 0, 1, 1] },
    city: { name: 'Bogor', logo: '/city/logo', languages: ['id'] },
  });
  await show();
  const missing = () => Object.entries(states()).flatMap(([name, state]) => (state === 'missing' ? [name] : []));
  expect(missing()).toEqual(['mail', 'alerts']);
  await click('Tick: Alerts');
  expect(setup.done).toEqual(['alerts']);
  expect(states().alerts).toBe('ticked');
  await click('Take the tick off: Alerts');
  expect(missing()).toEqual(['mail', 'alerts']);
  await click('Tick: A mail to yourself');
  await click('Tick: Alerts');
  expect(root.textContent).toBe('');
});

test('it goes when it is dismissed, and an auditor has none', async () => {
  await show();
  await click('I do not need this list');
  expect(setup.done).toHaveLength(12);
  expect(root.textContent).toBe('');
  setup = { done: [] };
  session.value = { ...session.value!, role: 'auditor' };
  await show();
  expect(root.textContent).toBe('');
});
