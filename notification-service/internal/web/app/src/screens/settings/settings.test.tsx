import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { notificationService, reportService, type Contact, type DigestSettings, type Preferences } from '../../api/client';
import { config } from '../../state/config';
import { ok, refused, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { SettingsScreen } from './settings';

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

function contact(part: Partial<Contact> = {}): Contact {
  return { address: 'ann@example.org', language: 'en', zone, state: 'active', email: ['report.status.updated'], ...part };
}

/** The settings that the server keeps of the reader. */
let kept: Contact | undefined;
let preferences: Preferences;
let digest: DigestSettings;
let root: HTMLElement;

const show = async () => {
  await act(() => render(<SettingsScreen />, root));
  await read();
};
/** Lets the screen read what it needs, and then its parts what they need. */
const read = async () => {
  await act(settled);
  await act(settled);
};
const press = async (name: string) => {
  await act(async () => {
    [...root.querySelectorAll('button')].find((button) => button.textContent === name)!.click();
    await settled();
  });
};
const type = (input: HTMLInputElement, value: string) =>
  act(() => {
    input.value = value;
    input.dispatchEvent(new Event('input', { bubbles: true }));
  });
const choose = (label: string) =>
  act(() => {
    [...root.querySelectorAll('label')]
      .find((each) => each.textContent.startsWith(label))!
      .querySelector('input')!
      .click();
  });
const submit = async (of: string) => {
  await act(async () => {
    root.querySelector<HTMLInputElement>(of)!.closest('form')!.requestSubmit();
    await settled();
  });
};

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  HTMLDialogElement.prototype.showModal = vi.fn(); // jsdom has no modal dialogs
  config.mails = true;
  kept = undefined;
  preferences = { email: [] };
  digest = { frequency: 'off', at: '07:00' };
  serve(notificationService, 'GET', (path) => {
    if (path === '/me/contact') return ok(kept);
    return ok(path === '/me/digest' ? digest : preferences);
  });
});

test('an address is proven by a code before anything else is asked', async () => {
  const put = serve(notificationService, 'PUT', () => ok(contact({ state: 'unverified' })));
  const post = serve(notificationService, 'POST', (path) => ok(path.endsWith('/verify') ? contact() : undefined));
  await show();
  expect(root.querySelectorAll('form')).toHaveLength(1);
  await type(root.querySelector<HTMLInputElement>('input[type=email]')!, ' ann@example.org ');
  await submit('input[type=email]');
  expect(put.mock.lastCall?.[1].body).toEqual({ address: 'ann@example.org', language: 'en', zone });
  expect(post.mock.lastCall?.[0]).toBe('/me/contact/code');
  expect(root.textContent).toContain('A code is on its way.');
  expect(root.querySelectorAll('form')).toHaveLength(1);
  await type(root.querySelector<HTMLInputElement>('input[inputmode=numeric]')!, ' 123456 ');
  await submit('input[inputmode=numeric]');
  expect(post.mock.lastCall).toMatchObject(['/me/contact/verify', { body: { code: ' 123456 ' } }]);
  await read();
  expect(root.textContent).toContain('Confirmed.');
  expect(root.querySelectorAll('form')).toHaveLength(2);
});

test('says what is wrong with an address, and with a code', async () => {
  serve(notificationService, 'PUT', () => refused(400, 'invalid-input', [{ pointer: '/address', detail: 'must be an address' }]));
  await show();
  await type(root.querySelector<HTMLInputElement>('input[type=email]')!, 'ann@example.org');
  await submit('input[type=email]');
  expect(root.querySelector('[role=alert]')?.textContent).toContain('An address such as');

  render(null, root);
  kept = contact({ state: 'unverified' });
  serve(notificationService, 'POST', (path) =>
    path.endsWith('/verify')
      ? refused(400, 'invalid-input', [{ pointer: '/code', detail: 'not the code' }])
      : refused(429, 'too-many-requests'),
  );
  await show();
  await type(root.querySelector<HTMLInputElement>('input[inputmode=numeric]')!, '123456');
  await submit('input[inputmode=numeric]');
  expect(root.querySelector('[role=alert]')?.textContent).toContain('wrong or has expired');
  await press('Send a new code');
  expect(root.textContent).toContain('five a day');
  expect(root.textContent).not.toContain('on its way');
});

test('nothing is chosen that was not asked for, and what is chosen is kept', async () => {
  kept = contact();
  const put = serve(notificationService, 'PUT', (_, { body }) => ok(body));
  await show();
  expect(root.querySelectorAll('input[type=checkbox]:checked')).toHaveLength(0);
  await choose('New status');
  await choose('Quiet hours');
  await submit('input[type=checkbox]');
  expect(put.mock.lastCall).toMatchObject([
    '/me/preferences',
    { body: { email: ['report.status.updated'], quiet_hours: { from: '21:00', to: '07:00' } } },
  ]);
  await choose('Quiet hours');
  await submit('input[type=checkbox]');
  expect(put.mock.lastCall?.[1].body).toEqual({ email: ['report.status.updated'] });

  await choose('Every week');
  await submit('input[type=radio]');
  expect(put.mock.lastCall).toMatchObject(['/me/digest', { body: { frequency: 'weekly', weekday: 'monday', at: '07:00' } }]);
  await choose('Never');
  await submit('input[type=radio]');
  expect(put.mock.lastCall?.[1].body).toEqual({ frequency: 'off' });
});

test('another zone than that of the browser can be put right', async () => {
  const elsewhere = zone === 'Asia/Jakarta' ? 'Asia/Makassar' : 'Asia/Jakarta';
  kept = contact({ zone: elsewhere });
  const put = serve(notificationService, 'PUT', (_, { body }) => ok({ ...kept, ...(body as object) }));
  await show();
  expect(root.textContent).toContain(`Times are those of ${elsewhere}.`);
  await press(`Use ${zone}`);
  expect(put.mock.lastCall).toMatchObject(['/me/contact', { body: { address: 'ann@example.org', zone } }]);
  expect(root.textContent).toContain(`Times are those of ${zone}.`);
});

test('an address is removed after a question', async () => {
  kept = contact();
  const remove = serve(notificationService, 'DELETE', () => ok(undefined));
  await show();
  await press('Remove the address');
  expect(remove).not.toHaveBeenCalled();
  await act(async () => {
    root.querySelector<HTMLElement>('dialog .danger')!.click();
    await settled();
  });
  expect(remove.mock.lastCall?.[0]).toBe('/me/contact');
  expect(root.querySelector('input[type=email]')).not.toBeNull();
});

test('a city without a mail server asks for nothing, and tells what it holds', async () => {
  config.mails = false;
  const get = serve(notificationService, 'GET', () => ok({ data: { follows: [] } }));
  serve(reportService, 'GET', () => ok({ data: { votes: [] } }));
  await show();
  expect(get).not.toHaveBeenCalled();
  expect(root.querySelector('form')).toBeNull();
  const saved: Blob[] = [];
  URL.createObjectURL = (file) => `blob:${saved.push(file as Blob)}`;
  URL.revokeObjectURL = vi.fn();
  HTMLAnchorElement.prototype.click = vi.fn(); // jsdom goes nowhere
  await press('Save as a file');
  await read();
  expect(get.mock.lastCall?.[0]).toBe('/me/data');
  expect(saved).toHaveLength(1);
  expect(saved[0]!.size).toBeGreaterThan(60);
});
