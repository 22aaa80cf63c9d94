/**
 * A client of CityConnect's event streams (docs/stream.md) that never gives
 * up. It needs nothing but a browser and may be copied.
 *
 * EventSource reconnects by itself after most failures, with the position it
 * had. Added here is what it does not do: notice a connection that is silent
 * although it looks open, start at a given position, and reconnect after an
 * answer that ends an EventSource permanently, such as a 503.
 */

/** What the server sends; `hb`, its heartbeat, is not handed on. */
export type StreamEvent = { type: 'ready' | 'notification' | 'reset' | 'progress'; data: unknown; id: string };

export interface StreamOptions {
  url: string;
  /** The position to resume after; none means from now on. */
  cursor?: string | undefined;
  onEvent(event: StreamEvent): void;
  /** Called with true once the stream is open, with false once it is not. */
  onLive(live: boolean): void;
  /** Asked before an ended stream is opened again; false ends it permanently. */
  mayReopen(): Promise<boolean>;
}

export interface Stream {
  /** Reconnects at once, unless the stream is open: the network may be back. */
  reconnect(): void;
  close(): void;
}

/** The server writes at least every 22 s: after two missed heartbeats the connection is dead. */
const SILENCE_MS = 45_000;
const RETRY_MS = { first: 1_000, max: 30_000 };

export function openStream(options: StreamOptions): Stream {
  let cursor = options.cursor ?? '';
  let source: EventSource | undefined;
  let watchdog: number | undefined;
  let retry: number | undefined;
  let delay = RETRY_MS.first;
  let attempt = 0;
  let closed = false;

  const onMessage = (event: MessageEvent<string>) => {
    clearTimeout(watchdog);
    watchdog = window.setTimeout(reopen, SILENCE_MS);
    delay = RETRY_MS.first;
    cursor = event.lastEventId || cursor;
    options.onLive(true);
    if (event.type === 'hb') return;
    options.onEvent({ type: event.type as StreamEvent['type'], data: JSON.parse(event.data), id: cursor });
  };

  const open = () => {
    const query = cursor && `?last_event_id=${encodeURIComponent(cursor)}`;
    source = new EventSource(options.url + query);
    for (const type of ['ready', 'notification', 'reset', 'progress', 'hb']) source.addEventListener(type, onMessage);
    source.onerror = () => {
      options.onLive(false);
      if (source?.readyState === EventSource.CLOSED) reopenLater();
    };
    watchdog = window.setTimeout(reopen, SILENCE_MS);
  };

  const stop = () => {
    attempt++;
    clearTimeout(watchdog);
    clearTimeout(retry);
    source?.close();
  };

  const reopen = () => {
    stop();
    options.onLive(false);
    open();
  };

  // Up to twice the delay, at random: a city's browsers must not reconnect at once.
  const reopenLater = () => {
    stop();
    const mine = attempt;
    retry = window.setTimeout(
      async () => {
        const allowed = await options.mayReopen();
        if (allowed && mine === attempt) open();
      },
      delay * (1 + Math.random()),
    );
    delay = Math.min(delay * 2, RETRY_MS.max);
  };

  open();
  return {
    reconnect: () => {
      if (!closed && source?.readyState !== EventSource.OPEN) reopen();
    },
    close: () => {
      closed = true;
      stop();
    },
  };
}
