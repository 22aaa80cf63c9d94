/** The browser's fetch and EventSource, answered by the city in this folder. */
import { answer } from './answers';
import { me, subscribe, upTo } from './city';

/** A path and its query, whatever drive or server the folder is on. */
function addressOf(url: string): URL {
  const { pathname, search } = new URL(url);
  return new URL(pathname.replace(/^\/[A-Za-z]:/, '') + search, 'http://city');
}

const browserFetch = window.fetch.bind(window);

window.fetch = async (input, init) => {
  const request = new Request(input, init);
  if (/^(data|blob):/.test(request.url)) return browserFetch(request);
  const text = await request.text();
  const body = (text && request.headers.get('Content-Type')?.includes('json') ? JSON.parse(text) : {}) as object;
  // An answer never comes within the same task.
  await new Promise((next) => setTimeout(next));
  const { status, value, tag } = answer(request.method, addressOf(request.url), body, request.headers);
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  return new Response(status === 204 ? null : JSON.stringify(value), { status, headers: { 'Content-Type': type, ETag: tag } });
};

const HEARTBEAT_MS = 15_000;

/** A live stream: it says where it is, and then what happens in this tab and in others. */
class CityEvents extends EventTarget {
  static readonly CLOSED = 2;
  readyState = 1;
  onerror = null;
  private readonly end: () => void;

  constructor(url: string) {
    super();
    const stream = url.startsWith('/feed') ? 'feed' : 'notifications';
    const send = (type: string, data: unknown, lastEventId = '') =>
      this.dispatchEvent(new MessageEvent(type, { data: JSON.stringify(data), lastEventId }));
    const opening = setTimeout(() => {
      const { unread_count, last_event_id } = upTo();
      if (stream === 'feed') send('ready', { quiet_ms: Number.MAX_SAFE_INTEGER });
      else if (me) send('ready', { unread_count, last_event_id }, last_event_id);
    });
    const leave = subscribe(stream, (data, id) => send('notification', data, id));
    const heartbeat = setInterval(() => send('hb', {}), HEARTBEAT_MS);
    this.end = () => {
      leave();
      clearTimeout(opening);
      clearInterval(heartbeat);
    };
  }

  close(): void {
    this.readyState = CityEvents.CLOSED;
    this.end();
  }
}

Object.assign(window, { EventSource: CityEvents });
// Each tab has streams of its own; a browser may keep locks from files.
Object.defineProperty(navigator, 'locks', { value: undefined });
