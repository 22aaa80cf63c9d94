/** The live streams, shared by all tabs, and how current they are. */
import { effect, signal } from '@preact/signals';

import { endSession, recheckSession, session, sessionEnded } from '../state/session';
import { openStream, type Stream, type StreamEvent } from '@cityconnect/stream/browser';
import { joinTabs, sendToTabs, type StreamName, type TabContext, type TabMessage, type Tabs } from './tabs';

export type Connection = { state: 'connecting' | 'live' | 'reconnecting' | 'offline'; since: Date };

/** How current the page is; `since` is when it became so. */
export const connection = signal<Connection>({ state: 'connecting', since: new Date() });

type Listener = (event: StreamEvent) => void;
type Change = 'session' | 'notifications' | 'followed';

const listeners: Record<StreamName, Set<Listener>> = { notifications: new Set(), feed: new Set() };
const changeListeners = new Set<(what: Change) => void>();

/** Absent before the page is live, as on the way back from an identity provider. */
let tabs: Tabs | undefined;
let streams: Partial<Record<StreamName, Stream>> = {};
/** The last position in the user's own stream that any tab has seen. */
let position: string | undefined;

/** Calls listener with every event of the stream, in every tab. */
export function onStream(name: StreamName, listener: Listener): void {
  listeners[name].add(listener);
}

/** Calls listener when another tab changed something that all tabs show. */
export function onChange(listener: (what: Change) => void): void {
  changeListeners.add(listener);
}

/** Tells the other tabs that this one changed something. */
export function announceChange(what: Change): void {
  (tabs?.send ?? sendToTabs)({ kind: 'changed', what });
}

/** Sets where the user's own stream begins, before it is first opened. */
export function startAt(cursor: string): void {
  position ??= cursor;
}

export function startLive(context?: TabContext): void {
  const joined = (tabs = joinTabs(followStreams, { onMessage, onMissed }, context));
  effect(() => {
    if (!sessionEnded.value) return;
    joined.send({ kind: 'session-ended', adopted: sessionEnded.value === 'guest.adopted' });
    joined.restart(); // the feed is everyone's
  });
  window.addEventListener('offline', () => setConnection('offline'));
  window.addEventListener('online', () => {
    setConnection('reconnecting');
    reconnect();
  });
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') reconnect();
  });
}

/** Opens the streams again: somebody has become a guest, and has one of their own. */
export function restartLive(): void {
  tabs?.restart();
}

function followStreams(send: (message: TabMessage) => void): () => void {
  const names: StreamName[] = session.value ? ['notifications', 'feed'] : ['feed'];
  const live: Partial<Record<StreamName, boolean>> = {};
  for (const name of names) {
    streams[name] = openStream({
      url: `/${name}/stream`,
      cursor: name === 'notifications' ? position : undefined,
      onEvent: (event) => send({ kind: 'event', stream: name, event }),
      onLive: (up) => {
        live[name] = up;
        const all = names.every((n) => live[n]);
        // One that opens while the other does not changes nothing.
        if (all || !up) send({ kind: 'live', live: all });
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

function onMessage(message: TabMessage): void {
  switch (message.kind) {
    case 'live':
      setConnection(message.live ? 'live' : navigator.onLine ? 'reconnecting' : 'offline');
      break;
    case 'session-ended':
      endSession(message.adopted ? 'guest-adopted' : undefined);
      break;
    case 'changed':
      for (const listener of changeListeners) listener(message.what);
      break;
    case 'event':
      if (isAdopted(message.event)) {
        endSession('guest-adopted');
        void recheckSession(); // which removes the cookie
        break;
      }
      if (message.stream === 'notifications') position = message.event.id;
      for (const listener of listeners[message.stream]) listener(message.event);
  }
}

/** Whether it is the last event of a guest whose reports an account has taken over. */
const isAdopted = ({ type, data }: StreamEvent) => type === 'reset' && (data as { reason?: string } | null)?.reason === 'guest_adopted';

/** Events went by while this tab was away: what is shown is fetched again. */
function onMissed(): void {
  const reset = { type: 'reset' as const, data: null, id: position ?? '' };
  for (const name of ['notifications', 'feed'] as const) for (const listener of listeners[name]) listener(reset);
}

function setConnection(state: Connection['state']): void {
  if (connection.value.state !== state) connection.value = { state, since: new Date() };
}

function reconnect(): void {
  for (const stream of Object.values(streams)) stream.reconnect();
}
