import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test } from 'vitest';

import { notificationService, reportService } from '../../api/client';
import { ok, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { subject } from '../../ui/title';
import { Console } from './console';
import { health } from './health';

const part = (name: string, state: string, cause: string, count: number) => ({
  name,
  state,
  cause,
  count,
  names: [],
  since: '2026-11-22T21:24:00Z',
  read_at: '2026-11-22T21:24:00Z',
});
const away = { response: new Response(null, { status: 503 }) };

let root: HTMLElement;
const show = async (...path: string[]) => {
  await act(() => render(<Console path={['ops', ...path]} />, root));
  await act(settled);
};
const counts = () =>
  [...root.querySelectorAll('nav a')].flatMap((tab) => {
    const count = tab.querySelector('.count');
    return count ? [[tab.childNodes[0]?.textContent, count.textContent]] : [];
  });

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  health.value = { reports: {}, notifications: {} };
});

test('each tab says how much waits there, and a request that fails takes no count away', async () => {
  const parts = [part('dead_letters', 'bad', 'open', 12), part('webhooks', 'bad', 'disabled', 1)];
  serve(notificationService, 'GET', () => ok({ at: '', parts }));
  serve(reportService, 'GET', () => ok({ at: '', parts: [part('outbox', 'bad', 'failed', 3), part('jobs', 'bad', 'failed', 1)] }));
  await show();
  const want = [
    ['Outbox', '3'],
    ['Dead letters', '12'],
    ['Webhooks', '1'],
    ['Schedules', '1'],
  ];
  expect(counts()).toEqual(want);
  serve(notificationService, 'GET', () => away);
  serve(reportService, 'GET', () => away);
  await act(() => render(null, root));
  await show();
  expect(counts()).toEqual(want);
  expect(root.querySelector('.count')?.getAttribute('title')).toMatch(/^as of /);
});

test('the tab of the browser counts the problems', async () => {
  serve(notificationService, 'GET', () => ok({ at: '', parts: [] }));
  serve(reportService, 'GET', () => ok({ at: '', parts: [] }));
  await show();
  // Nothing is known of any part but the gateway, for one reason.
  expect(subject.value).toBe('(1) Console');
});

test('settings of the city share one tab', async () => {
  serve(notificationService, 'GET', () => ok({ at: '', parts: [], items: [] }));
  serve(reportService, 'GET', () => ok({ at: '', parts: [], departments: [], categories: [] }));
  await show('departments');
  const [tabs, settings] = [...root.querySelectorAll('nav')].map((nav) => [...nav.querySelectorAll('a')].map((a) => a.textContent));
  expect(tabs).not.toContain('Departments');
  expect(tabs?.at(-1)).toBe('Settings');
  expect(settings).toEqual(['Categories', 'Areas', 'Things', 'Departments', 'Calendar', 'Connections', 'Open311', 'People', 'City']);
  expect([...root.querySelectorAll('[aria-current]')].map((a) => a.textContent)).toEqual(['Settings', 'Departments']);
});
