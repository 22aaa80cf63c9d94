import { render, type ComponentChild } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { notificationService, type Delivery, type Webhook } from '../../../api/client';
import { deferred, ok, refused, serve } from '../../../testing/api';
import { settled } from '../../../testing/browser';
import { DeliveryDetail } from './delivery';
import { EndpointDetail } from './endpoint';
import { EndpointForm } from './form';
import { EndpointList } from './list';
import { localTime, RecoverForm } from './recover-form';
import { RotateForm } from './rotate-form';
import { milliseconds, successRate } from './state';
import { Router } from '../../../ui/router';

const ID = '0198c0de-0000-7000-8000-000000000001';

function webhook(part: Partial<Webhook> = {}): Webhook {
  return {
    id: ID,
    url: 'https://hooks.example.org/in?key=secret',
    description: 'Work orders',
    event_types: ['report.created'],
    category_ids: [],
    area: [],
    order: 'report',
    in_flight: 2,
    scopes: [],
    state: 'enabled',
    state_since: '2026-01-01T12:00:00Z',
    secret_since: '2026-01-01T12:00:00Z',
    version: 3,
    created_at: '2026-01-01T12:00:00Z',
    updated_at: '2026-01-01T12:00:00Z',
    summary: { succeeded: 999, failed: 1, p95_ms: 41, waiting: 0, held: 0 },
    ...part,
  };
}

function delivery(part: Partial<Delivery> = {}): Delivery {
  return {
    id: 7,
    webhook_id: ID,
    message_id: 'm1',
    type: 'report.created',
    state: 'dead',
    attempt_count: 1,
    created_at: '2026-01-01T12:00:00Z',
    body: '{"type":"report.created"}',
    attempts: [
      {
        number: 1,
        at: '2026-01-01T12:00:01Z',
        duration_ms: 12,
        status: 500,
        class: '5xx',
        error: 'answered 500',
        request_headers: { 'webhook-id': 'm1' },
        response: '<h1>oops</h1>',
      },
    ],
    ...part,
  };
}

let root: HTMLElement;
const show = async (what: ComponentChild) => {
  await act(() => render(<Router>{what}</Router>, root));
  await act(settled); // what it reads once it is there
};
const button = (name: string) => [...root.querySelectorAll('button')].find((each) => each.textContent === name);
const click = (name: string) =>
  act(async () => {
    button(name)!.click();
    await settled();
  });
const field = (name: string) =>
  [...root.querySelectorAll('label')].find((label) => label.textContent.includes(name))!.querySelector<HTMLInputElement>('input, select')!;
const fill = (name: string, value: string) =>
  act(() => {
    field(name).value = value;
    field(name).dispatchEvent(new Event('input', { bubbles: true }));
  });
const submit = () =>
  act(async () => {
    root.querySelector('form')!.requestSubmit();
    await settled();
  });

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  // jsdom has no modal dialogs.
  HTMLDialogElement.prototype.showModal = vi.fn();
});

test('lists endpoints by what became of their deliveries, without what is secret in an address', async () => {
  const failing = webhook({
    id: 'w2',
    description: '',
    summary: { succeeded: 0, failed: 0, waiting: 4, held: 0, open_until: '2026-01-01T12:00:00Z' },
  });
  serve(notificationService, 'GET', () => ok({ items: [webhook(), failing] }));
  await show(<EndpointList />);
  const rows = [...root.querySelectorAll('.rows li')].map((row) => row.textContent);
  expect(rows[0]).toContain('Work orders');
  expect(rows[0]).toContain('99.9 % of the last 1,000');
  expect(rows[1]).toContain('hooks.example.org');
  expect(rows[1]).toContain('Failing');
  expect(root.textContent).not.toContain('key=secret');
});

test.each([
  [0, 0, 'Nothing sent in 24 hours'],
  [1, 0, '100 % of the last 1'],
  [1999, 1, '99.9 % of the last 2,000'],
  [0, 3, '0 % of the last 3'],
])('%i of which %i failed reads %s', (succeeded, failed, words) => {
  expect(successRate({ succeeded, failed, waiting: 0, held: 0 })).toBe(words);
});

test('a long time reads in seconds', () =>
  expect([milliseconds(0.4), milliseconds(41.2), milliseconds(15_000)]).toEqual(['0 ms', '41 ms', '15 s']));

test('registers an endpoint, shows its secret once, and tries it out', async () => {
  const post = serve(notificationService, 'POST', (path) =>
    path === '/admin/webhooks' ? ok({ webhook: webhook(), secret: 'whsec_abc' }) : ok(delivery({ state: 'waiting' })),
  );
  const onClose = vi.fn();
  await show(<EndpointForm onClose={onClose} />);
  await fill('Address', ' https://hooks.example.org/in ');
  await act(() => field('report.created').click());
  await fill('Area', '107.5, -7, 107.8, -6.8');
  await submit();
  expect(post.mock.lastCall?.[1].body).toMatchObject({
    url: 'https://hooks.example.org/in',
    event_types: ['report.created'],
    category_ids: [],
    area: [107.5, -7, 107.8, -6.8],
    order: 'report',
    in_flight: 2,
  });
  expect(field('Signing secret').value).toBe('whsec_abc');
  expect(onClose).not.toHaveBeenCalled();
  await click('Send a test');
  expect(post.mock.lastCall?.[0]).toBe('/admin/webhooks/{id}/test');
  expect(location.pathname).toBe(`/ops/webhooks/${ID}/7`);
});

test('says what is wrong beside the field', async () => {
  serve(notificationService, 'POST', () =>
    refused(400, 'invalid-input', [{ pointer: '/url', detail: 'must have the full name of a host' }]),
  );
  await show(<EndpointForm onClose={() => {}} />);
  await fill('Address', 'https://localhost');
  await submit();
  expect(field('Address').closest('label')?.textContent).toContain('must have the full name of a host');
});

test('changes an endpoint at the version that was seen', async () => {
  const patch = serve(notificationService, 'PATCH', () => refused(412, 'stale-version'));
  const onClose = vi.fn();
  await show(<EndpointForm webhook={webhook()} onClose={onClose} />);
  await fill('Description', 'Chat');
  await submit();
  expect(patch.mock.lastCall?.[1].params?.header).toEqual({ 'If-Match': '"3"' });
  expect(root.querySelector('[role=alert]')?.textContent).toContain('Someone else');
  expect(field('Description').value).toBe('Chat');
  expect(onClose).not.toHaveBeenCalled();
});

test('ends the old secret at once if asked to', async () => {
  const post = serve(notificationService, 'POST', () => ok({ secret: 'whsec_new' }));
  await show(<RotateForm webhook={webhook()} onClose={() => {}} />);
  await fill('Hours', '0');
  await submit();
  expect(post.mock.lastCall?.[1].body).toEqual({ keep_old_for_s: 0 });
  expect(field('Signing secret').value).toBe('whsec_new');
});

test('counts before it recovers, and counts again for another time', async () => {
  const post = serve(notificationService, 'POST', () => ok({ resent: 2, created: 1 }));
  await show(<RecoverForm webhook={webhook()} onClose={() => {}} />);
  const sent = () => post.mock.calls.map(([, { body }]) => (body as { dry_run: boolean }).dry_run);
  await submit();
  expect(root.querySelector('[role=status]')?.textContent).toContain('would send 2 again, and 1');
  await fill('From', '2026-01-01T00:00');
  expect(root.querySelector('[role=status]')).toBeNull();
  await submit();
  await submit();
  expect(sent()).toEqual([true, true, false]);
  expect(root.querySelector('[role=status]')?.textContent).toContain('2 are sent again, and 1');
  expect((post.mock.lastCall?.[1].body as { since: string }).since).toBe(new Date('2026-01-01T00:00').toISOString());
});

test('a moment is local in the form', () => {
  const moment = new Date(2026, 0, 2, 3, 4);
  expect(localTime(moment)).toBe('2026-01-02T03:04');
});

test('a disabled endpoint says why, and asks what becomes of what is held', async () => {
  const disabled = webhook({ state: 'disabled', state_reason: 'gone', summary: { succeeded: 0, failed: 0, waiting: 0, held: 12 } });
  serve(notificationService, 'GET', (path) => ok(path.endsWith('deliveries') ? { items: [] } : disabled));
  const post = serve(notificationService, 'POST', () => ok(webhook()));
  await show(<EndpointDetail id={ID} />);
  expect(root.querySelector('.state')?.textContent).toBe('Disabled: it answered 410 Gone');
  expect(button('Send a test')).toBeUndefined();
  await click('Enable');
  expect(root.querySelector('legend')?.textContent).toBe('12 events were held back');
  await act(() => field('Begin with new events').click());
  await submit();
  expect(post.mock.lastCall).toEqual(['/admin/webhooks/{id}/enable', { params: { path: { id: ID } }, body: { held: 'cancel' } }]);
});

test('says when the endpoint is gone', async () => {
  serve(notificationService, 'GET', () => refused(404, 'not-found'));
  await show(<EndpointDetail id={ID} />);
  expect(root.querySelector('.empty')?.textContent).toBe('This endpoint was deleted.');
});

test('shows request and answer of each attempt as text, and sends again', async () => {
  serve(notificationService, 'GET', () => ok(delivery()));
  const answer = deferred<ReturnType<typeof ok>>();
  const post = serve(notificationService, 'POST', () => answer.promise);
  await show(<DeliveryDetail webhook={ID} id={7} />);
  const exchange = [...root.querySelectorAll('details pre')].map((part) => part.textContent);
  expect(exchange).toEqual(['webhook-id: m1', '<h1>oops</h1>']);
  expect(root.querySelector('.timeline h1')).toBeNull();
  await click('Send again');
  expect(post.mock.lastCall?.[0]).toBe('/admin/deliveries/{id}/resend');
  answer.resolve(ok(delivery({ state: 'waiting' })));
  await act(settled);
});

test('an endpoint says when it is disabled, once half of the time has passed', async () => {
  const failing = webhook({ disable_at: '2026-01-06T12:00:00Z' });
  serve(notificationService, 'GET', (path) =>
    ok(path.endsWith('/deliveries') ? { items: [] } : path.includes('{id}') ? failing : { items: [failing] }),
  );
  for (const view of [<EndpointList />, <EndpointDetail id={ID} />]) {
    await show(view);
    expect(root.querySelector('.fault')?.textContent).toMatch(/^Nothing has succeeded for long\. It is disabled from Jan 6, 2026/);
  }
});
