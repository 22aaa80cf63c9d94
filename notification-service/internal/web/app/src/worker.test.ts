import { beforeEach, expect, test, vi } from 'vitest';

/** A page that is open in the browser. */
interface Page {
  url: string;
  focused: boolean;
  focus(): Promise<void>;
}

/** It is checked where it is, with a service worker's types; here it has none. */
const [load] = Object.values(import.meta.glob('../worker/worker.ts'));

let pages: Page[];
const showNotification = vi.fn();
const openWindow = vi.fn();
const subscribe = vi.fn();
const requests = vi.fn();
const handlers: Record<string, (event: unknown) => void> = {};

const page = (path: string, focused = false): Page => ({ url: location.origin + path, focused, focus: vi.fn(async () => {}) });

/** Has the service worker handle an event, and waits until it has. */
async function handle(type: string, event: object): Promise<void> {
  let work: Promise<unknown> | undefined;
  handlers[type]!({ ...event, waitUntil: (promise: Promise<unknown>) => (work = promise) });
  await work;
}

const news = { title: 'Dark crossing', body: 'Now in progress', lang: 'en', tag: 'topic', url: '/reports/r1' };
const subscription = (address: string) => ({
  toJSON: () => ({ endpoint: address, expirationTime: null, keys: { p256dh: 'p', auth: 'a' } }),
});
/** The service's data of this browser. */
const told = () => requests.mock.calls.filter(([path]) => path === '/me/push').map(([, { body }]) => JSON.parse(body as string) as unknown);
const push = () => handle('push', { data: { json: () => news } });

beforeEach(async () => {
  pages = [];
  showNotification.mockReset();
  openWindow.mockReset();
  subscribe.mockReset().mockImplementation(async () => subscription('new'));
  requests.mockReset().mockImplementation(async () => new Response('{"key":"AQID"}'));
  vi.stubGlobal('addEventListener', (type: string, handler: (event: unknown) => void) => (handlers[type] = handler));
  vi.stubGlobal('registration', { showNotification, pushManager: { subscribe } });
  vi.stubGlobal('Notification', { permission: 'granted' });
  vi.stubGlobal('fetch', requests);
  vi.stubGlobal('clients', { matchAll: async () => pages, openWindow });
  vi.resetModules();
  await load!();
});

test('what is pushed is shown while nobody looks at the page', async () => {
  pages = [page('/reports/r1')];
  await push();
  expect(showNotification).toHaveBeenCalledWith('Dark crossing', {
    body: 'Now in progress',
    lang: 'en',
    tag: 'topic',
    icon: '/icon.svg',
    data: '/reports/r1',
  });
});

test('who looks at a page sees it there', async () => {
  pages = [page('/'), page('/mine', true)];
  await push();
  expect(showNotification).not.toHaveBeenCalled();
});

test('a click leads to the report, where it is open already to that page', async () => {
  const notification = { close: vi.fn(), data: '/reports/r1' };
  await handle('notificationclick', { notification });
  expect(openWindow).toHaveBeenCalledWith('/reports/r1');
  expect(notification.close).toHaveBeenCalledOnce();
  pages = [page('/'), page('/reports/r1')];
  await handle('notificationclick', { notification });
  expect(openWindow).toHaveBeenCalledOnce();
  expect(pages[1]!.focus).toHaveBeenCalledOnce();
});

test('the address that a push service has given the browser is sent', async () => {
  await handle('pushsubscriptionchange', { newSubscription: subscription('given') });
  expect(subscribe).not.toHaveBeenCalled();
  expect(requests.mock.lastCall).toMatchObject(['/me/push', { method: 'POST', headers: { 'Content-Type': 'application/json' } }]);
  expect(told()).toEqual([{ endpoint: 'given', keys: { p256dh: 'p', auth: 'a' } }]);
});

test('a browser that says no address asks for one, with the key of the city', async () => {
  await handle('pushsubscriptionchange', {});
  expect(subscribe).toHaveBeenCalledWith({ userVisibleOnly: true, applicationServerKey: 'AQID' });
  expect(told()).toEqual([{ endpoint: 'new', keys: { p256dh: 'p', auth: 'a' } }]);
});

test('who is not notified any more, or not signed in, is asked nothing', async () => {
  requests.mockImplementation(async () => new Response(null, { status: 401 }));
  await handle('pushsubscriptionchange', {});
  requests.mockImplementation(async () => new Response('{"key":"AQID"}'));
  vi.stubGlobal('Notification', { permission: 'denied' });
  await handle('pushsubscriptionchange', {});
  expect(subscribe).not.toHaveBeenCalled();
  expect(told()).toEqual([]);
});
