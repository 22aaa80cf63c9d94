/** What happens in the city, as it happens: the streams and their state. */
import { signal } from '@preact/signals';

import { recheckSession, session } from '../state/session';
import { openStream, type Stream, type StreamEvent } from './stream';
import { joinTabs, tellOthers, type StreamName, type Tidings } from './tabs';

export type Connection = { state: 'connecting' | 'live' | 'reconnecting' | 'offline'; since: Date };

/** How current the page is; `since` is when it became so. */
export const connection = signal<Connection>({ state: 'connecting', since: new Date() });

type Listener = (event: StreamEvent) => void;
const listeners: Record<StreamName, Set<Listener>> = { mine: new Set(), feed: new Set() };
const changes = new Set<(what: 'session' | 'notifications') => void>();

let streams: Partial<Record<StreamName, Stream>> = {};
/** The last position in the user's own stream that any tab has seen. */
let position: string | undefined;

/** Calls listener with every event of the stream, in every tab. */
export function onStream(name: StreamName, listener: Listener): void {
  listeners[name].add(listener);
}

/** Calls listener when another tab changed something that all tabs show. */
export function onChange(listener: (what: 'session' | 'notifications') => void): void {
  changes.add(listener);
}

export function tellOtherTabs(what: 'session' | 'notifications'): void {
  tellOthers({ kind: 'changed', what });
}

/** Sets where the user's own stream begins, before it is first opened. */
export function startAfter(cursor: string): void {
  position ??= cursor;
}

export function startLive(): void {
  joinTabs(follow, hear);
  window.addEventListener('offline', () => show('offline'));
  window.addEventListener('online', () => {
    show('reconnecting');
    wake();
  });
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') wake();
  });
}

function follow(tell: (tidings: Tidings) => void): () => void {
  const names: StreamName[] = session.value ? ['mine', 'feed'] : ['feed'];
  const live: Partial<Record<StreamName, boolean>> = {};
  for (const name of names) {
    streams[name] = openStream({
      url: name === 'mine' ? '/notifications/stream' : '/feed/stream',
      cursor: name === 'mine' ? position : undefined,
      onEvent: (event) => tell({ kind: 'event', stream: name, event }),
      onLive: (up) => {
        live[name] = up;
        const all = names.every((n) => live[n]);
        // One that opens while the other does not changes nothing.
        if (all || !up) tell({ kind: 'live', live: all });
      },
      // Only the user's own stream can end because the session did.
      mayReopen: async () => name === 'feed' || (await recheckSession()),
    });
  }
  return () => {
    for (const stream of Object.values(streams)) stream.close();
    streams = {};
  };
}

function hear(tidings: Tidings): void {
  switch (tidings.kind) {
    case 'live':
      show(tidings.live ? 'live' : navigator.onLine ? 'reconnecting' : 'offline');
      break;
    case 'changed':
      for (const listener of changes) listener(tidings.what);
      break;
    case 'event':
      if (tidings.stream === 'mine') position = tidings.event.id;
      for (const listener of listeners[tidings.stream]) listener(tidings.event);
  }
}

function show(state: Connection['state']): void {
  if (connection.value.state !== state) connection.value = { state, since: new Date() };
}

function wake(): void {
  for (const stream of Object.values(streams)) stream.wake();
}
