import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

vi.mock('../../live/live', () => ({ onStream: () => {}, onChange: () => {}, announceChange: () => {} }));

import { notificationService, reportService, type Contact, type Preferences, type Report } from '../../api/client';
import { config } from '../../state/config';
import { session } from '../../state/session';
import { ok, report, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { FiledScreen } from './receipt';

const ID = '0198c0de-0000-7000-8000-000000000001';
const place = { latitude: -6.6, longitude: 106.8 };

let root: HTMLElement;
let own: Report;
let outlook: object;
let contact: Contact | undefined;
let preferences: Preferences;
let put: ReturnType<typeof serve>;

const show = async () => {
  await act(() => render(<FiledScreen path={['filed', ID]} />, root));
  for (let i = 0; i < 4; i++) await act(settled);
};
const press = async (name: string) => {
  await act(() => [...root.querySelectorAll('button')].find((each) => each.textContent.includes(name))!.click());
  for (let i = 0; i < 4; i++) await act(settled);
};

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  config.mails = true;
  config.push = false;
  session.value = { sub: 'ann', name: 'Ann', role: 'resident', expires_at: '2030-01-01T00:00:00Z' };
  own = report({ id: ID, mine: true, ...place });
  outlook = {};
  contact = { address: 'ann@example.org', language: 'en', zone: 'UTC', state: 'active', email: [] };
  preferences = { email: ['report.vote.received'], quiet_hours: { from: '21:00', to: '07:00' } };
  serve(reportService, 'GET', (path) => {
    if (path === '/reports/{id}/outlook') return ok(outlook);
    if (path === '/reports/{id}') return ok(own);
    const others = [4, 1, 3, 2].map((n) => report({ id: `r${n}`, title: `Report ${n}`, latitude: -6.6, longitude: 106.8 + n / 1000 }));
    return ok({ reports: [own, ...others, report({ id: 'voted', my_vote: 'upvote', ...place })] });
  });
  serve(notificationService, 'GET', (path) => {
    if (path === '/me/contact') return ok(contact);
    return ok(preferences);
  });
  put = serve(notificationService, 'PUT', (_, { body }) => ok(body));
});

test('says the number, who is in charge, and by when', async () => {
  outlook = { department_name: 'Street lights', due_at: '2999-12-01T09:00:00Z' };
  await show();
  expect(root.textContent).toContain('Its number is 0000-0001');
  expect(root.textContent).toContain('In charge: Street lights. The city intends to finish by Sunday, December 1.');
});

test('what the city does not know, or what is over, is not said', async () => {
  outlook = { due_at: '2001-12-01T09:00:00Z' };
  await show();
  expect(root.textContent).toContain('decides who is in charge');
  expect(root.textContent).not.toContain('intends to finish');
});

test('mails are switched on with one tap, beside what is on already', async () => {
  await show();
  await press('Notify me by e-mail');
  expect(put.mock.calls).toEqual([
    ['/me/preferences', { body: { ...preferences, email: ['report.vote.received', 'report.status.updated'] } }],
  ]);
  expect(root.textContent).toContain('You get an e-mail with each new status.');
});

test('about an anonymous report mails are asked for by themselves, with what they give away', async () => {
  own = { ...own, privacy_level: 'anonymous' };
  contact = { ...contact!, email: ['report.status.updated'] };
  preferences = { email: ['report.status.updated'] };
  await show();
  expect(root.textContent).toContain('learns that you filed a report');
  await press('Notify me by e-mail');
  expect(put.mock.calls).toEqual([['/me/mail-consents', { body: { report_id: ID, mail: true } }]]);
});

test('whoever has no address is led to where one is given, and whoever gets mails is not asked', async () => {
  contact = undefined;
  await show();
  expect(root.querySelector('a[href="/settings"]')?.textContent).toBe('Add an e-mail address');
  await act(() => render(null, root));
  contact = { address: 'a@example.org', language: 'en', zone: 'UTC', state: 'active', email: ['report.status.updated'] };
  await show();
  expect([...root.querySelectorAll('.panel button')]).toEqual([]);
  expect(root.textContent).toContain('You get an e-mail with each new status.');
});

test('the three nearest open reports of others can be supported', async () => {
  const post = serve(reportService, 'POST', () => ok({ report_id: 'r1', score: 8, version: 3 }));
  await show();
  const titles = [...root.querySelectorAll('.rows a')].map(({ textContent }) => textContent);
  expect(titles).toEqual(['Report 1', 'Report 2', 'Report 3']);
  await press('Matters to me too');
  expect(post).toHaveBeenCalledWith('/reports/{id}/vote', { params: { path: { id: 'r1' } }, body: { vote_type: 'upvote' } });
  expect(root.querySelector('.rows li')?.textContent).toContain('8 votes');
});
