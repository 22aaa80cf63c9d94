/** Every screen shows what the running services answer: an empty city, one of each thing, and a full one. */
import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { notificationService, reportService } from '../api/client';
import { App } from '../app';
import { loadCategories } from '../state/categories';
import { session, type Role } from '../state/session';
import empty from '../testing/answers/empty.json';
import full from '../testing/answers/full.json';
import one from '../testing/answers/one.json';
import { ok, refused, serve } from '../testing/api';
import { go } from '../ui/router';

// jsdom draws no map.
vi.mock('../map/plot', () => ({
  createPlot: () => {
    throw new Error('no WebGL');
  },
}));
vi.mock('virtual:maplibre-shared', () => ({ default: '' }));

const cities: Record<string, Record<string, unknown>> = { empty, one, full };

/** The addresses of all screens, with who sees them. */
const screens: Record<string, Role> = {
  '': 'resident',
  '?map=1': 'resident',
  'reports/{report}': 'resident',
  'filed/{report}': 'resident',
  new: 'resident',
  'new?step=2': 'resident',
  'new?step=3': 'resident',
  'new?step=4': 'resident',
  mine: 'resident',
  settings: 'resident',
  queue: 'official',
  'queue?map=1': 'official',
  'queue?report={report}': 'official',
  'queue/photos': 'official',
  'queue/abuse': 'official',
  'queue/numbers': 'official',
  'queue/templates': 'official',
  'queue/moves': 'official',
  ops: 'operator',
  'ops/queues': 'operator',
  'ops/outbox': 'operator',
  'ops/dead-letters': 'operator',
  'ops/dead-letters/1': 'operator',
  'ops/replays': 'operator',
  'ops/webhooks': 'operator',
  'ops/webhooks/{endpoint}': 'operator',
  'ops/webhooks/{endpoint}/1': 'operator',
  'ops/email': 'operator',
  'ops/schedules': 'operator',
  'ops/audit': 'operator',
  'ops/search?q=queue': 'operator',
  'ops/messages/{message}': 'operator',
  'ops/reconciliation': 'operator',
  'ops/categories': 'operator',
  'ops/areas': 'operator',
  'ops/assets': 'operator',
  'ops/departments': 'operator',
  'ops/calendar': 'operator',
  'ops/connections': 'operator',
  'ops/open311': 'operator',
  'ops/guests': 'operator',
  'ops/people': 'operator',
  'ops/city': 'operator',
};

let root: HTMLElement;
let requests: number;

/** Lets what is under way come to its end: requests, and code that is loaded. */
async function rest() {
  for (let before = -1, quiet = 0; quiet < 3; quiet = requests === before && !root.querySelector('.skeleton') ? quiet + 1 : 0) {
    before = requests;
    await act(() => new Promise((next) => setTimeout(next, 5)));
  }
}

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  requests = 0;
  vi.stubGlobal('reportError', (error: unknown) => {
    throw error;
  });
  Object.assign(performance, { getEntriesByName: () => [], mark: () => {} });
  vi.stubGlobal('matchMedia', () => ({ matches: true, addEventListener() {}, removeEventListener() {} }));
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe = () => {};
      disconnect = () => {};
    },
  );
});

afterEach(() => {
  session.value = undefined;
});

/** Opens an address of the page, where the services have these answers. */
async function open(address: string, role: Role, answers: Record<string, unknown>) {
  for (const service of [reportService, notificationService]) {
    serve(service, 'GET', (path) => {
      requests++;
      return path in answers ? ok(answers[path]) : refused(404, 'not-found');
    });
  }
  session.value = { sub: 'a', name: 'Ana', role, expires_at: '2030-01-01T00:00:00Z' };
  await loadCategories();
  await act(() => render(<App />, root));
  await act(() => go(address.replace(/{\w+}/, '0198c0de-0000-7000-8000-000000000001')));
  await rest();
}

const broken = 'This part of the page failed';
const button = (name: string) => [...root.querySelectorAll('button')].find(({ textContent }) => textContent === name)!;

describe.each(Object.entries(cities))('%s', (_, answers) => {
  test.each(Object.entries(screens))('/%s', async (address, role) => {
    await open(address, role, answers);
    expect(root.querySelector('main h1')?.textContent).toBeTruthy();
    expect(root.textContent).not.toContain(broken);
    expect(requests).toBeLessThan(60);
  });
});

test('departments are still edited after they are saved', async () => {
  await open('ops/departments', 'operator', one);
  serve(reportService, 'PUT', () => ok(one['/reports/departments']));
  await act(() => button('Save departments').click());
  await act(() => button('Add a department').click());
  expect(root.querySelectorAll('.panel')).toHaveLength(2);
});

test('a screen that fails says so, keeps the tabs and does not ask again until its reader does', async () => {
  vi.stubGlobal('reportError', () => {});
  const departments = { departments: [{ id: 1, name: 'Lights', category_ids: [2] }] };
  await open('ops/departments', 'operator', { ...one, '/reports/departments': departments });
  expect(root.querySelector('[role=alert]')?.textContent).toContain('What you had saved is safe');
  expect(root.querySelector('nav a[href="/ops/areas"]')).not.toBeNull();
  const before = requests;
  await rest();
  expect(requests).toBe(before);
  await act(() => go('ops/areas'));
  await rest();
  expect(root.textContent).not.toContain(broken);
});
