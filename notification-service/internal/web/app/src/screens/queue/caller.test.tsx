import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { notificationService, reportService } from '../../api/client';
import { fileIntake, intake, updateIntake } from '../../state/intake';
import { Intake } from './caller';

const id = '0198c0de-0000-7000-8000-000000000001';
const telephone = { source: 'telephone', entered_by: { id: 'olga', name: 'Olga' }, caller: 'v2.k1.sealed' } as const;
let sent: { method: string; path: string; key: string | null; body: Record<string, unknown> }[];
/** The answers by path; an error without one. */
let answers: Record<string, [status: number, body: object]>;
let root: HTMLElement;

beforeEach(() => {
  sent = [];
  answers = {
    '/reports': [201, { id }],
    '/reports/{id}/work': [200, { intake: telephone }],
    '/callers': [200, { state: 'unverified', language: 'id' }],
    '/callers/state': [404, { type: 'about:blank', title: 'Not found', status: 404 }],
  };
  const answer = (method: string) => async (path: string, init: { params?: { header?: Record<string, string> }; body?: object }) => {
    sent.push({ method, path, key: init.params?.header?.['Idempotency-Key'] ?? null, body: { ...init.body } });
    const [status, body] = answers[path] ?? [0, {}];
    if (status === 0) throw new TypeError('no connection');
    const response = new Response(null, { status });
    return status < 300 ? { data: body, response } : { error: body, response };
  };
  vi.spyOn(reportService, 'POST').mockImplementation(answer('POST') as never);
  vi.spyOn(reportService, 'GET').mockImplementation(answer('GET') as never);
  vi.spyOn(notificationService, 'POST').mockImplementation(answer('POST') as never);
  vi.spyOn(notificationService, 'PUT').mockImplementation(answer('PUT') as never);
  root = document.body.appendChild(document.createElement('div'));
});

afterEach(() => {
  render(null, root);
  root.remove();
  vi.restoreAllMocks();
});

test('what is entered is filed once, and the address follows, however often it is sent', async () => {
  updateIntake({ title: ' Dark lamp ', category: 2, mail: ' budi@example.org ', language: 'id' });
  const { key } = intake.value;
  delete answers['/callers'];
  await expect(fileIntake()).rejects.toThrow();
  expect(intake.value.title).toBe(' Dark lamp '); // nothing typed is lost
  answers['/callers'] = [200, { state: 'unverified', language: 'id' }];
  expect(await fileIntake()).toBe(id);
  expect(sent.filter(({ path }) => path === '/reports').map((each) => each.key)).toEqual([key, key]);
  expect(sent[0]?.body).toMatchObject({ title: 'Dark lamp', source: 'telephone', privacy_level: 'anonymous' });
  expect(JSON.stringify(sent[0]?.body)).not.toContain('budi');
  expect(sent.at(-1)?.body).toMatchObject({ report_id: id, caller: 'v2.k1.sealed', address: 'budi@example.org', language: 'id' });
  expect(intake.value.mail).toBe('');
  expect(intake.value.key).not.toBe(key);
  expect(JSON.stringify({ ...localStorage, ...sessionStorage })).not.toMatch(/budi|Dark lamp/); // others use the browser
});

test('a report says how it came, and takes an address until one is confirmed', async () => {
  const { config } = await import('../../state/config');
  config.mails = true;
  const show = async () => {
    await act(() => render(<Intake key={Math.random()} id={id} intake={telephone} />, root));
    await act(() => new Promise((resolve) => setTimeout(resolve, 20)));
  };
  await show();
  expect(root.textContent).toContain('Telephone');
  expect(root.textContent).toContain('Entered by Olga');
  expect(root.textContent).toContain('No address for mails');
  const input = root.querySelector<HTMLInputElement>('input[type=email]')!;
  await act(() => {
    input.value = 'budi@example.org';
    input.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await act(() => root.querySelector('form')!.requestSubmit());
  await act(() => new Promise((resolve) => setTimeout(resolve, 20)));
  expect(root.textContent).toContain('Address not confirmed yet');
  expect(root.querySelector<HTMLInputElement>('input[type=email]')!.value).toBe('');
  answers['/callers/state'] = [200, { state: 'active', language: 'id' }];
  await show();
  expect(root.textContent).toContain('Gets mails');
  expect(root.querySelector('form')).toBeNull();
});
