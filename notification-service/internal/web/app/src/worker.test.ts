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
const handlers: Record<string, (event: unknown) => void> = {};

const page = (path: string, focused = false): Page => ({ url: location.origin + path, focused, focus: vi.fn(async () => {}) });

/** Has the service worker handle an event, and waits until it has. */
async function handle(type: string, event: object): Promise<void> {
  let work: Promise<unknown> | undefined;
  handlers[type]!({ ...event, waitUntil: (promise: Promise<unknown>) => (work = promise) });
  await work;
}

const news = { title: 'Dark crossing', body: 'Now in progress', lang: 'en', tag: 'topic', url: '/reports/r1' };
const push = () => handle('push', { data: { json: () => news } });

beforeEach(async () => {
  pages = [];
  showNotification.mockReset();
  openWindow.mockReset();
  vi.stubGlobal('addEventListener', (type: string, handler: (event: unknown) => void) => (handlers[type] = handler));
  vi.stubGlobal('registration', { showNotification });
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
