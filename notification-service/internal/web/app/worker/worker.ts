/**
 * The service worker: the page starts without a network, and says then what it
 * lacks. It keeps the page's own files and nothing else. What the services
 * answer is never kept here: it may be somebody's, and it may be old.
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

async function kept(path: string): Promise<Response> {
  const cache = await caches.open(KEPT);
  return (await cache.match(path)) ?? fetch(path);
}
