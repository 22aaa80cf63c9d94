import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { notificationService, reportService } from '../../api/client';
import { ok, refused, report, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import '../../testing/unmount';
import { route, Router } from '../../ui/router';
import { reference } from '../../ui/reference';
import { find, questionOf } from './find';
import { SearchField, SearchResults } from './search';

const id = '0198c0de-0000-7000-8000-000000000001';
const trace = '0af7651916cd43dd8448eb211c80319c';

test.each([
  [` ${id.toUpperCase()} `, { kind: 'id', id }],
  [trace, { kind: 'trace', id: trace }],
  [`00-${trace.toUpperCase()}-b7ad6b7169203331-01`, { kind: 'trace', id: trace }],
  ['7k3m-9qxa', { kind: 'reference', text: '7K3M-9QXA' }],
  ['7k3m9qxa', { kind: 'reference', text: '7K3M9QXA' }],
  ['7k3m-9qxu', { kind: 'text', text: '7k3m-9qxu' }], // a number has no u
  ['no such report', { kind: 'text', text: 'no such report' }],
  // Of an address nothing but its host is used.
  ['Ann.Other@Mail.Example', { kind: 'address', host: 'mail.example' }],
])('%s is a question of its kind', (entered, question) => expect(questionOf(entered)).toEqual(question));

/** Answers each address by the beginning of its path. */
const answers = (reports: Record<string, unknown>, notifications: Record<string, unknown> = {}) => ({
  reports: serve(reportService, 'GET', (path) => (path in reports ? ok(reports[path]) : refused(404, 'not-found'))),
  notifications: serve(notificationService, 'GET', (path) => ok(notifications[path] ?? { items: [] })),
});
const queries = (called: ReturnType<typeof answers>) =>
  [...called.reports.mock.calls, ...called.notifications.mock.calls].map(([path, { params } = {}]) => ({ path, ...params?.['query'] }));

beforeEach(() => vi.restoreAllMocks());

test('a number of a report leads to the report, and to all that is about it', async () => {
  const filed = report({ id });
  const called = answers(
    { '/reports': { reports: [report({ id: id.replace(/1$/, '2') }), filed] }, '/admin/outbox/messages': { messages: [] } },
    {
      '/admin/delayed': {
        items: [
          { message_id: 'm1', body: { report_id: id } },
          { message_id: 'm2', body: {} },
        ],
      },
    },
  );
  const found = await find({ kind: 'reference', text: reference(id) });
  expect(found.report).toMatchObject({ id, title: filed.title });
  expect(found.delayed.items.map(({ message_id }) => message_id)).toEqual(['m1']);
  expect(queries(called)).toContainEqual({ path: '/admin/deliveries', report_id: id, limit: 50 });
  expect(queries(called)).toContainEqual({ path: '/admin/outbox/messages', status: 'failed', report_id: id, limit: 50 });
});

test('an id of no report is that of a message', async () => {
  const called = answers({ '/admin/outbox/messages': { messages: [] } });
  const found = await find({ kind: 'id', id });
  expect(found.report).toBeUndefined();
  expect(queries(called)).toContainEqual({ path: '/admin/deliveries', message_id: id, limit: 50 });
  expect(queries(called)).toContainEqual({ path: '/admin/dlq/messages', text: id, limit: 50 });
});

test('a trace is in no log of webhooks, and text among dead letters alone', async () => {
  const called = answers({ '/admin/outbox/messages': { messages: [] } });
  await find({ kind: 'trace', id: trace });
  expect(queries(called).map(({ path }) => path)).not.toContain('/admin/deliveries');
  vi.restoreAllMocks();
  const again = answers({});
  await find({ kind: 'text', text: 'no such report' });
  expect(queries(again)).toEqual([{ path: '/admin/dlq/messages', text: 'no such report', limit: 50 }]);
});

test('an address leaves the browser nowhere', async () => {
  const called = answers({});
  await find(questionOf('ann@mail.example'));
  expect(queries(called)).toEqual([]);
});

const root = document.createElement('div');
async function search(entered: string) {
  document.body.replaceChildren(root);
  await act(() =>
    render(
      <Router>
        <SearchField />
      </Router>,
      root,
    ),
  );
  root.querySelector('input')!.value = entered;
  await act(() => void root.querySelector('form')!.dispatchEvent(new Event('submit', { cancelable: true })));
  await act(() => render(<SearchResults />, root));
  await act(settled);
}

test('a place that does not answer takes nothing from the others', async () => {
  serve(reportService, 'GET', () => refused(503, 'unavailable'));
  serve(notificationService, 'GET', (path) =>
    path === '/admin/deliveries'
      ? ok({
          items: [{ id: 7, webhook_id: 3, type: 'report.created', state: 'dead', message_id: 'm1', created_at: '2026-11-22T07:30:00Z' }],
        })
      : ok({ items: [] }),
  );
  await search(id);
  expect(route.value.query.get('q')).toBe(id);
  expect(root.querySelector('[role=status]')?.textContent).toBe('1 row found');
  expect(root.querySelector('a[href="/ops/webhooks/3/7"]')?.textContent).toBe('report.created');
  expect(root.querySelector('a[href="/ops/messages/m1"]')?.textContent).toBe('Story');
  expect(root.querySelector('section[aria-label=Outbox] [role=alert]')).not.toBeNull();
});

test('says that nothing was found, and of an address where to look', async () => {
  const called = answers({ '/admin/outbox/messages': { messages: [] } });
  await search(id);
  expect(root.querySelector('.empty')).not.toBeNull();
  called.reports.mockClear();
  called.notifications.mockClear();
  await search('ann@mail.example');
  expect(root.querySelector('a[href="/ops/email"]')).not.toBeNull();
  expect(root.textContent).not.toContain('ann@');
  expect(queries(called)).toEqual([]);
});
