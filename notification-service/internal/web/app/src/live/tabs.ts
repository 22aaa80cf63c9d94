/**
 * One set of streams for all tabs of a browser: the tab that holds a Web Lock
 * leads, which means that it follows the streams and passes what they bring on
 * to the others over a BroadcastChannel. When it leaves, the lock goes to the
 * next tab, which resumes after the last event.
 *
 *               lock granted
 *     waiting ───────────────▶ leading
 *      ▲  ▲ └──────────┐          │ │
 *      │  └────────────┼──────────┘ │
 *      │   lock stolen │            │
 *      │               ▼            │
 *      └───────────── away ◀────────┘
 *        shown again     frozen, or in the back/forward cache
 *
 * A tab that goes away gives its lock and its streams up: it would keep both
 * and pass nothing on. One that was frozen without notice keeps them all the
 * same, but sends no heartbeat, and a visible tab then steals the lock.
 *
 * Web Locks and not a SharedWorker, because Chrome on Android has none. Without
 * Web Locks (a page that came by plain HTTP from another host), every tab leads.
 */
import type { StreamEvent } from '@cityconnect/stream/browser';

export type StreamName = 'notifications' | 'feed';
export type TabMessage =
  | { kind: 'event'; stream: StreamName; event: StreamEvent }
  | { kind: 'live'; live: boolean }
  | { kind: 'changed'; what: 'session' | 'notifications' | 'followed' }
  | { kind: 'session-ended'; adopted: boolean };

/** Hello asks the leader for a heartbeat. */
type ChannelMessage = TabMessage | { kind: 'hello' } | { kind: 'heartbeat'; live: boolean };
type Channel = Pick<BroadcastChannel, 'postMessage' | 'onmessage' | 'close'>;

/** Follows the streams until the returned function is called. */
export type FollowStreams = (send: (message: TabMessage) => void) => () => void;

export interface TabListener {
  /** Called with every message of the leader, in the leading tab as well, and of other tabs. */
  onMessage(message: TabMessage): void;
  /** Called when the tab returns from where no message reached it. */
  onMissed(): void;
}

/** The parts of its browser that a tab uses; tests bring their own. */
export interface TabContext {
  window: EventTarget;
  document: EventTarget & Pick<Document, 'visibilityState'>;
  openChannel(): Channel;
  /** Absent where the page came by plain HTTP. */
  locks: Pick<LockManager, 'request'> | undefined;
}

export interface Tabs {
  /** Sends message to the other tabs. */
  send(message: TabMessage): void;
  /** Opens the streams again, if this tab leads: the set of streams may have changed. */
  restart(): void;
}

/** Another name with every change of ChannelMessage: an older page may be open in another tab. */
const LOCK = 'cityconnect.live';
const HEARTBEAT_MS = 5_000;
/** After this long without a message the leader is taken for frozen: three heartbeats were missed. */
const LEADER_TIMEOUT_MS = 20_000;
/** How long a tab that became visible waits for the heartbeat that it asks for. */
const HELLO_TIMEOUT_MS = 3_000;

const openChannel = (): Channel => new BroadcastChannel(LOCK);

/** Sends message to all tabs that have joined, from a page that has not. */
export function sendToTabs(message: TabMessage): void {
  const channel = openChannel();
  channel.postMessage(message);
  channel.close();
}

export function joinTabs(
  followStreams: FollowStreams,
  { onMessage, onMissed }: TabListener,
  { window, document, openChannel, locks }: TabContext = tabContext(),
): Tabs {
  /** Closed while this tab is away. */
  let channel: Channel | undefined;
  const post = (message: ChannelMessage) => channel?.postMessage(message);
  let live = false;
  let leaderTimeout: ReturnType<typeof setTimeout> | undefined;
  /** Ends the request for the lock, or gives the lock back. */
  let request = new AbortController();
  /** Set while this tab leads. */
  let stopLeading: (() => void) | undefined;

  const send = (message: TabMessage) => {
    if (message.kind === 'live') live = message.live;
    post(message);
    onMessage(message);
  };

  const lead = () => {
    clearTimeout(leaderTimeout);
    live = false;
    const stopStreams = followStreams(send);
    const heartbeat = setInterval(() => post({ kind: 'heartbeat', live }), HEARTBEAT_MS);
    post({ kind: 'heartbeat', live });
    stopLeading = () => {
      stopLeading = undefined;
      clearInterval(heartbeat);
      stopStreams();
    };
  };

  const requestLock = async (steal: boolean) => {
    request.abort();
    const { signal } = (request = new AbortController());
    const onGranted = () => {
      if (signal.aborted) return Promise.resolve();
      lead();
      return new Promise<void>((release) => signal.addEventListener('abort', () => release()));
    };
    try {
      await locks?.request(LOCK, steal ? { steal } : { signal }, onGranted);
    } catch {
      if (signal.aborted) return; // this tab left, or steals the lock instead
      awaitLeader(LEADER_TIMEOUT_MS);
      if (!stopLeading) return; // it was refused, and is requested again if no leader is heard
      // Another tab took this one for frozen and stole the lock.
      stopLeading();
      void requestLock(false);
    }
  };

  /** Steals the lock unless the leader sends something in time. */
  const awaitLeader = (timeout: number) => {
    clearTimeout(leaderTimeout);
    leaderTimeout = setTimeout(() => {
      if (document.visibilityState === 'visible') void requestLock(true);
      else awaitLeader(LEADER_TIMEOUT_MS);
    }, timeout);
  };

  const onChannelMessage = ({ data }: { data: ChannelMessage }) => {
    if (data.kind === 'hello') {
      if (stopLeading) post({ kind: 'heartbeat', live });
      return;
    }
    if (!stopLeading && locks) awaitLeader(LEADER_TIMEOUT_MS);
    onMessage(data.kind === 'heartbeat' ? { kind: 'live', live: data.live } : data);
  };

  const join = () => {
    channel = openChannel();
    channel.onmessage = onChannelMessage;
    if (!locks) return lead();
    post({ kind: 'hello' });
    awaitLeader(LEADER_TIMEOUT_MS);
    void requestLock(false);
  };

  const leave = () => {
    if (!channel) return;
    stopLeading?.();
    request.abort();
    clearTimeout(leaderTimeout);
    channel.close();
    channel = undefined;
  };

  const rejoin = () => {
    if (channel) return;
    join();
    onMissed();
  };

  window.addEventListener('pagehide', leave);
  document.addEventListener('freeze', leave);
  window.addEventListener('pageshow', rejoin);
  document.addEventListener('resume', rejoin);
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState !== 'visible' || stopLeading || !channel || !locks) return;
    post({ kind: 'hello' });
    awaitLeader(HELLO_TIMEOUT_MS);
  });
  join();

  return {
    send: post,
    restart() {
      if (!stopLeading) return;
      stopLeading();
      lead();
    },
  };
}

function tabContext(): TabContext {
  return { window, document, openChannel, locks: navigator.locks };
}
