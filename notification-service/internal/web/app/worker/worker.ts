/**
 * The service worker: the page starts without a network, and says then what it
 * lacks; pushes are shown while the page is closed, and the service gets their
 * address when that changes. It keeps the page's own files and nothing else. Answers
 * of the services are never kept here: they may be somebody's, and they may be old.
 */
export {};
declare const self: ServiceWorkerGlobalScope;

/** The files of this version of the page; the build fills both in. */
const FILES = ['__FILES__'];
const KEPT = 'cityconnect.__VERSION__';

self.addEventListener('install', (event) => {
  event.waitUntil(caches.open(KEPT).then((cache) => cache.addAll(FILES)));
});

// It takes over when no page of the version before is open any more.
self.addEventListener('activate', (event) => {
  const remove = async () => {
    const names = await caches.keys();
    await Promise.all(names.filter((name) => name.startsWith('cityconnect.') && name !== KEPT).map((name) => caches.delete(name)));
  };
  event.waitUntil(remove());
});

self.addEventListener('fetch', (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== 'GET' || origin !== self.location.origin) return;
  // The newest where there is a network. All addresses of the page have the same file.
  if (request.mode === 'navigate') event.respondWith(fetch(request).catch(() => kept('/')));
  else if (!FILES.includes(pathname)) return;
  else if (pathname.startsWith('/assets/')) event.respondWith(kept(pathname));
  else event.respondWith(fetch(request).catch(() => kept(pathname)));
});

/** The content of a push; notification-service's package push writes it. */
interface News {
  title: string;
  body: string;
  lang: string;
  /** A push with the same tag is replaced. */
  tag: string;
  /** A path of the page. */
  url: string;
}

self.addEventListener('push', (event) => {
  if (event.data) event.waitUntil(show(event.data.json() as News));
});

/** A reader who looks at the page sees it there. Browsers forbid to show nothing otherwise. */
async function show({ title, body, lang, tag, url }: News): Promise<void> {
  const windows = await self.clients.matchAll({ type: 'window', includeUncontrolled: true });
  if (windows.some(({ focused }) => focused)) return;
  await self.registration.showNotification(title, { body, lang, tag, icon: '/icon.svg', data: url });
}

self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data as string));
});

async function open(url: string): Promise<void> {
  const windows = await self.clients.matchAll({ type: 'window', includeUncontrolled: true });
  const there = windows.find((page) => new URL(page.url).pathname === url);
  await (there ? there.focus() : self.clients.openWindow(url));
}

// The push service has given the browser another address, or none: what is sent to
// the one before is lost.
self.addEventListener('pushsubscriptionchange', (event) => event.waitUntil(renew(event)));

/**
 * Sends the service the address that holds from now on. Without a session the page
 * sends it at the next sign-in, in the language of the page: checkDevice.
 */
async function renew({ newSubscription }: PushSubscriptionChangeEvent): Promise<void> {
  const { endpoint, keys } = (newSubscription ?? (await subscribe()))?.toJSON() ?? {};
  if (!endpoint) return;
  const body = JSON.stringify({ endpoint, keys });
  await fetch('/me/push', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
}

/** Asks the push service for an address; not every browser has one in its event. */
async function subscribe(): Promise<PushSubscription | undefined> {
  if (Notification.permission !== 'granted') return undefined;
  const answer = await fetch('/push/key');
  if (!answer.ok) return undefined;
  const { key } = (await answer.json()) as { key: string };
  return self.registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
}

async function kept(path: string): Promise<Response> {
  const cache = await caches.open(KEPT);
  return (await cache.match(path)) ?? fetch(path);
}
