/**
 * A client of CityConnect's event streams (docs/stream.md) that never gives up,
 * whatever carries the events: see browser.ts and fetch.ts.
 *
 *             first event                ended, broken, silent
 *     opening ───────────▶ live ───────────────────────────────▶ waiting
 *        ▲                  │ gap                                   │
 *        └──────────────────┴───────────────────────────────────────┘
 *
 * The numbers of notifications have no gaps. One that came before is dropped. One
 * that comes too early is not handed on: the stream is opened again at the last
 * one before it, and the server sends what is between. If it cannot, the
 * application gets a reset, as it does from the server.
 */
import { steps } from './position.js';

/** The server's events; `hb`, its heartbeat, is not handed on. */
export type StreamEvent = { type: 'ready' | 'notification' | 'reset' | 'progress'; data: unknown; id: string };

export interface StreamOptions {
  url: string;
  /** The position to resume after; none means from now on. */
  cursor?: string | undefined;
  onEvent(event: StreamEvent): void;
  /** Called with true once the stream is open, with false once it is not. */
  onLive?(live: boolean): void;
  /**
   * Asked before an ended stream is opened again; false ends it permanently. The
   * status is that of the answer, where it is known.
   */
  mayReopen(status?: number): boolean | Promise<boolean>;
}

export interface Stream {
  /** Reconnects at once, unless the stream is open: the network may be back. */
  reconnect(): void;
  close(): void;
}

/** The types of the events that the server sends. */
export const EVENT_TYPES = ['ready', 'notification', 'reset', 'progress', 'hb'] as const;

/** The events that a connection reports. */
export interface ConnectionListener {
  onMessage(type: string, data: string, id: string): void;
  /** The connection broke, and comes back by itself. */
  onBreak(): void;
  /** The connection ended: status is that of its answer, waitMs is how long the server wants to be left alone. */
  onEnd(status?: number, waitMs?: number): void;
}

/**
 * Opens a connection to url that begins after cursor, or now if that is empty. Once
 * it is closed, or has reported its end, it reports nothing more.
 */
export type Connect = (url: string, cursor: string, listener: ConnectionListener) => { close(): void };

/** The server writes at least every 22 s: after two missed heartbeats the connection is dead. */
const SILENCE_MS = 45_000;
const RETRY_MS = { first: 1_000, max: 30_000 };

export function follow(connect: Connect, options: StreamOptions): Stream {
  let cursor = options.cursor ?? '';
  let connection: ReturnType<Connect> | undefined;
  let watchdog: ReturnType<typeof setTimeout> | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let delay = RETRY_MS.first;
  let attempt = 0;
  let live = false;
  let closed = false;
  /** Where a gap was found. A second one at the same place stays. */
  let gapAt: string | undefined;

  const setLive = (up: boolean) => {
    live = up;
    options.onLive?.(up);
  };

  const watch = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(reopen, SILENCE_MS);
  };

  const onMessage = (type: string, data: string, id: string) => {
    watch();
    delay = RETRY_MS.first;
    const numbered = type === 'notification' || type === 'ready';
    let event = { type, data: JSON.parse(data), id: ((numbered || type === 'reset') && id) || cursor } as StreamEvent;
    const ahead = numbered && cursor ? steps(event.id, cursor) - Number(type === 'notification') : 0;
    if (ahead > 0) {
      if (gapAt !== cursor) {
        gapAt = cursor;
        return reopen();
      }
      event = { type: 'reset', data: { reason: 'gap' }, id };
    }
    setLive(true);
    if (ahead < 0) {
      if (type === 'notification') return;
      event.id = cursor;
    }
    cursor = event.id;
    if (type !== 'hb') options.onEvent(event);
  };

  const open = () => {
    watch();
    connection = connect(options.url, cursor, {
      onMessage,
      onBreak: () => setLive(false),
      onEnd: reopenLater,
    });
  };

  const stop = () => {
    attempt++;
    clearTimeout(watchdog);
    clearTimeout(retry);
    connection?.close();
  };

  const reopen = () => {
    stop();
    setLive(false);
    open();
  };

  // Up to twice the delay, at random: a city's clients must not reconnect at once.
  const reopenLater = (status?: number, waitMs?: number) => {
    setLive(false);
    stop();
    const mine = attempt;
    retry = setTimeout(
      async () => {
        if ((await options.mayReopen(status)) && mine === attempt) open();
      },
      waitMs ?? delay * (1 + Math.random()),
    );
    if (waitMs === undefined) delay = Math.min(delay * 2, RETRY_MS.max);
  };

  open();
  return {
    reconnect: () => {
      if (!closed && !live) reopen();
    },
    close: () => {
      closed = true;
      stop();
    },
  };
}
