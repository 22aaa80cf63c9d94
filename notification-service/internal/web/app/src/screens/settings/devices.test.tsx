import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { notificationService, type Device, type Preferences } from '../../api/client';
import { setLanguage } from '../../lang/i18n';
import { config } from '../../state/config';
import { addThisDevice, checkDevice, leaveDevice, removeDevice, thisDevice, toldAddress } from '../../state/device';
import { deferred, ok, refused, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { SettingsScreen } from './settings';

const phone: Device = { id: 'phone', label: 'Firefox, Android', created_at: '2026-01-01T12:00:00Z', last_used_at: '2026-01-02T12:00:00Z' };
const here: Device = { id: 'here', label: 'Chrome, Linux', created_at: '2026-01-03T12:00:00Z' };

/** The bytes 1, 2, 3: what the server gives is base64url. */
const KEY = 'AQID';
/** Where the browser's push service has it reached. */
const ADDRESS = 'https://push.example.org/1';

/** The settings that the server keeps of the reader. */
let devices: Device[];
let preferences: Preferences;
let root: HTMLElement;

/** The browser's answers to its push service. */
let subscription: PushSubscription | null;
const subscribe = vi.fn();
const unsubscribe = vi.fn();

/** A browser that can be notified, and what its reader answers when it asks. */
function stubBrowser(permission: NotificationPermission, answer: NotificationPermission = 'granted') {
  const made = (): Partial<PushSubscription> => ({
    options: { applicationServerKey: new Uint8Array([1, 2, 3]).buffer, userVisibleOnly: true },
    toJSON: () => ({ endpoint: ADDRESS, keys: { p256dh: 'p', auth: 'a' } }),
    unsubscribe,
  });
  unsubscribe.mockReset().mockImplementation(async () => ((subscription = null), true));
  subscribe.mockReset().mockImplementation(async () => (subscription = made() as PushSubscription));
  const asked = { permission, requestPermission: vi.fn(async () => (asked.permission = answer)) };
  vi.stubGlobal('PushManager', class {});
  vi.stubGlobal('Notification', asked);
  const worker = { pushManager: { getSubscription: async () => subscription, subscribe } };
  const value = { ready: Promise.resolve(worker), getRegistration: async () => worker };
  Object.defineProperty(navigator, 'serviceWorker', { configurable: true, value });
  subscription = permission === 'granted' ? (made() as PushSubscription) : null;
  return asked;
}

const show = async () => {
  await act(() => render(<SettingsScreen />, root));
  await read();
};
const read = async () => {
  for (let i = 0; i < 4; i++) await act(settled);
};
const button = (name: string) => [...root.querySelectorAll('button')].find((each) => each.textContent === name);
const press = async (name: string) => {
  await act(() => button(name)!.click());
  await read();
};

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  config.mails = false;
  config.push = true;
  devices = [];
  preferences = { email: [], push: ['report.status.updated'] };
  thisDevice.value = '';
  toldAddress.value = ADDRESS;
  serve(notificationService, 'GET', (path) => {
    if (path === '/push/key') return ok({ key: KEY });
    return ok(path === '/me/push' ? { devices } : preferences);
  });
});

afterEach(async () => {
  Reflect.deleteProperty(navigator, 'serviceWorker');
  config.push = false;
  await setLanguage('en');
});

test('a browser that cannot be notified says so, and offers nothing', async () => {
  await show();
  expect(root.textContent).toContain('This browser cannot be notified.');
  expect(button('Notify this device')).toBeUndefined();
});

test('a browser that must never ask says how that is changed', async () => {
  stubBrowser('denied');
  await setLanguage('id');
  await show();
  expect(root.textContent).toContain('Izinkan di pengaturannya untuk situs ini');
  expect(button('Kabari perangkat ini')).toBeUndefined();
});

test('the browser asks at a click, and then there is a device', async () => {
  const asked = stubBrowser('default');
  const post = serve(notificationService, 'POST', () => ok(here));
  await show();
  expect(asked.requestPermission).not.toHaveBeenCalled();
  expect(root.querySelector('form')).toBeNull(); // nobody is notified of anything yet
  await press('Notify this device');
  expect(subscribe).toHaveBeenCalledWith({ userVisibleOnly: true, applicationServerKey: KEY });
  const body = { endpoint: ADDRESS, keys: { p256dh: 'p', auth: 'a' }, language: 'en' };
  expect(post.mock.lastCall).toMatchObject(['/me/push', { body }]);
  expect(root.querySelector('.rows li')?.textContent).toContain('Chrome, LinuxThis device');
  expect(button('Notify this device')).toBeUndefined();
  expect(root.querySelectorAll('form input:checked')).toHaveLength(1); // what the server has chosen
});

test('the subjects of pushes are kept, without an address', async () => {
  stubBrowser('default');
  devices = [phone];
  const put = serve(notificationService, 'PUT', (_, { body }) => ok(body));
  await show();
  expect(root.querySelectorAll('form')).toHaveLength(1);
  expect(root.textContent).not.toContain('Quiet hours');
  await act(() => root.querySelectorAll('input')[3]!.click());
  await press('Save');
  expect(put.mock.lastCall).toMatchObject([
    '/me/preferences',
    { body: { email: [], push: ['report.status.updated', 'report.vote.received'] } },
  ]);
});

test('who says no is not asked again', async () => {
  stubBrowser('default', 'denied');
  const post = serve(notificationService, 'POST', () => ok(here));
  await show();
  await press('Notify this device');
  expect(post).not.toHaveBeenCalled();
  expect(root.textContent).toContain('This browser blocks notifications');
});

test('a push service that does not answer is named', async () => {
  stubBrowser('default');
  subscribe.mockRejectedValue(new DOMException('no push service', 'AbortError'));
  await show();
  await press('Notify this device');
  expect(root.querySelector('[role=alert]')?.textContent).toContain('does not answer');
  subscribe.mockImplementation(async () => (subscription = { toJSON: () => ({ endpoint: 'x' }) } as PushSubscription));
  serve(notificationService, 'POST', () => refused(400, 'invalid-input'));
  await press('Notify this device');
  expect(root.querySelector('[role=alert]')?.textContent).not.toContain('does not answer');
});

test('a device is removed, this one also from the browser', async () => {
  stubBrowser('granted');
  devices = [here, phone];
  thisDevice.value = 'here';
  serve(notificationService, 'POST', () => ok(here));
  const remove = serve(notificationService, 'DELETE', () => ok(undefined));
  await show();
  const second = root.querySelectorAll<HTMLElement>('.rows button')[1]!;
  expect(second.getAttribute('aria-label')).toBe('Remove Firefox, Android');
  await act(() => second.click());
  await read();
  expect(remove.mock.lastCall).toMatchObject(['/me/push/{id}', { params: { path: { id: 'phone' } } }]);
  expect(unsubscribe).not.toHaveBeenCalled();
  await press('Remove');
  expect(unsubscribe).toHaveBeenCalledOnce();
  expect(root.querySelector('.rows')).toBeNull();
  expect(button('Notify this device')).toBeDefined();
});

test('one that was removed from elsewhere ends here', async () => {
  stubBrowser('granted');
  thisDevice.value = 'here';
  const post = serve(notificationService, 'POST', () => ok(here));
  await show();
  expect(unsubscribe).toHaveBeenCalledOnce();
  expect(post).not.toHaveBeenCalled();
});

test('the device says again who it is, with the present language and key', async () => {
  stubBrowser('granted');
  devices = [here];
  thisDevice.value = 'here';
  const post = serve(notificationService, 'POST', () => ok(here));
  serve(notificationService, 'GET', (path) => ok(path === '/push/key' ? { key: 'AQIE' } : path === '/me/push' ? { devices } : preferences));
  await setLanguage('id');
  await show();
  expect(unsubscribe).toHaveBeenCalledOnce(); // it had asked with another key
  expect(subscribe).toHaveBeenCalledWith({ userVisibleOnly: true, applicationServerKey: 'AQIE' });
  expect(post.mock.lastCall?.[1].body).toMatchObject({ language: 'id' });
});

test('another address is sent, and the device at the one before is removed', async () => {
  stubBrowser('granted');
  thisDevice.value = 'here';
  toldAddress.value = 'https://push.example.org/0';
  const post = serve(notificationService, 'POST', () => ok({ ...here, id: 'moved' }));
  const remove = serve(notificationService, 'DELETE', () => ok(undefined));
  await checkDevice();
  await checkDevice();
  expect(post).toHaveBeenCalledOnce();
  expect(post.mock.lastCall?.[1].body).toMatchObject({ endpoint: ADDRESS });
  expect(remove.mock.lastCall).toMatchObject(['/me/push/{id}', { params: { path: { id: 'here' } } }]);
  expect([thisDevice.value, toldAddress.value]).toEqual(['moved', ADDRESS]);
  expect(unsubscribe).not.toHaveBeenCalled();
});

test('a device that is removed while it says again who it is stays removed', async () => {
  stubBrowser('granted');
  thisDevice.value = 'here';
  const posted = deferred<ReturnType<typeof ok>>();
  serve(notificationService, 'POST', () => posted.promise);
  const remove = serve(notificationService, 'DELETE', () => ok(undefined));
  const said = addThisDevice();
  await settled();
  await removeDevice('here');
  posted.resolve(ok(here));
  expect(await said).toBeUndefined();
  expect(remove).toHaveBeenCalledTimes(2); // and the one that came back in between
  expect(thisDevice.value).toBe('');
});

test('a device that the service worker has told about is still this one', async () => {
  stubBrowser('granted');
  thisDevice.value = 'here';
  toldAddress.value = 'https://push.example.org/0';
  devices = [{ ...here, id: 'moved' }]; // a push to the address before has removed that
  serve(notificationService, 'POST', () => ok(devices[0]));
  serve(notificationService, 'DELETE', () => ok(undefined));
  await show();
  expect(unsubscribe).not.toHaveBeenCalled();
  expect(root.querySelector('.rows li')?.textContent).toContain('Chrome, LinuxThis device');
});

test('who signs out is not notified here any more, also if the server is away', async () => {
  stubBrowser('granted');
  serve(notificationService, 'DELETE', () => Promise.reject(new TypeError('no network')));
  await leaveDevice();
  expect(unsubscribe).not.toHaveBeenCalled(); // nobody had asked
  thisDevice.value = 'here';
  await leaveDevice();
  expect(unsubscribe).toHaveBeenCalledOnce();
  expect(thisDevice.value).toBe('');
});

test('what is pushed for somebody else ends when another signs in', async () => {
  stubBrowser('granted');
  thisDevice.value = 'here';
  await checkDevice();
  expect(unsubscribe).not.toHaveBeenCalled();
  thisDevice.value = '';
  await checkDevice();
  expect(unsubscribe).toHaveBeenCalledOnce();
});

test('a city that pushes nothing shows no devices', async () => {
  config.push = false;
  config.mails = true;
  const get = serve(notificationService, 'GET', () => refused(404, 'not-found'));
  await show();
  expect(get).not.toHaveBeenCalledWith('/me/push');
  expect(root.textContent).not.toContain('Devices');
});
