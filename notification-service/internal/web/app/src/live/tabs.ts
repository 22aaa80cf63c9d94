/**
 * One set of streams for all tabs of a browser: the tab that holds a Web Lock
 * leads, which means that it follows the streams and passes what they bring on
 * to the others over a BroadcastChannel. When it is closed, the lock goes to
 * the next tab, which resumes after the last event.
 *
 *     waiting ──lock granted──▶ leading
 *        ▲                         │
 *        └──────lock stolen────────┘
 *
 * A frozen tab keeps its lock but sends no heartbeat. A waiting tab that is
 * visible then steals the lock.
 *
 * Web Locks and not a SharedWorker, because Chrome on Android has none. Without
 * Web Locks (a page that came by plain HTTP from another host), every tab leads.
 */
import type { StreamEvent } from './stream';

export type StreamName = 'notifications' | 'feed';
export type TabMessage =
  | { kind: 'event'; stream: StreamName; event: StreamEvent }
  | { kind: 'live'; live: boolean }
  | { kind: 'changed'; what: 'session' | 'notifications' };

/** A tab that joins says hello; the leader answers with a heartbeat. */
type ChannelMessage = TabMessage | { kind: 'hello' } | { kind: 'heartbeat'; live: boolean };

/** Follows the streams until the returned function is called. */
export type FollowStreams = (send: (message: TabMessage) => void) => () => void;

/** Another name with every change of ChannelMessage: an older page may be open in another tab. */
const LOCK = 'cityconnect.live';
const HEARTBEAT_MS = 5_000;
/** After this long without a message the leader is taken for frozen: three heartbeats were missed. */
const LEADER_TIMEOUT_MS = 20_000;

const channel = new BroadcastChannel(LOCK);

/** Sends message to the other tabs, whether this one has joined them or not. */
export function sendToTabs(message: TabMessage): void {
  channel.postMessage(message);
}

/** What a tab uses of its browser; tests bring their own. */
export interface TabContext {
  document: Pick<Document, 'visibilityState'>;
  channel: Pick<BroadcastChannel, 'postMessage' | 'onmessage'>;
  /** Absent where the page came by plain HTTP. */
  locks: Pick<LockManager, 'request'> | undefined;
}

/** Calls onMessage with every message of the leader, in the leading tab as well. */
export function joinTabs(
  followStreams: FollowStreams,
  onMessage: (message: TabMessage) => void,
  { document, channel, locks }: TabContext = tabContext(),
): void {
  const post = (message: ChannelMessage) => channel.postMessage(message);
  let leading = false;
  let live = false;
  let leaderTimeout: number | undefined;
  /** Ends the request for the lock that is under way. */
  let request = new AbortController();

  const send = (message: TabMessage) => {
    if (message.kind === 'live') live = message.live;
    post(message);
    onMessage(message);
  };

  /** Leads until the returned function is called. */
  const lead = () => {
    clearTimeout(leaderTimeout);
    leading = true;
    const stopStreams = followStreams(send);
    post({ kind: 'heartbeat', live });
    const heartbeat = setInterval(() => post({ kind: 'heartbeat', live }), HEARTBEAT_MS);
    return () => {
      leading = false;
      clearInterval(heartbeat);
      stopStreams();
    };
  };

  const requestLock = async (steal: boolean) => {
    request.abort();
    const mine = (request = new AbortController());
    let stopLeading = () => {};
    const onGranted = () => {
      stopLeading = lead();
      return new Promise<never>(() => {}); // held until it is stolen
    };
    try {
      await locks?.request(LOCK, steal ? { steal } : { signal: mine.signal }, onGranted);
    } catch {
      if (mine !== request) return; // gave its place in the queue up for stealing
      // Another tab took this one for frozen and stole the lock.
      stopLeading();
      awaitLeader();
      void requestLock(false);
    }
  };

  /** Steals the lock unless the leader sends something in time. */
  const awaitLeader = () => {
    clearTimeout(leaderTimeout);
    leaderTimeout = window.setTimeout(() => {
      if (document.visibilityState === 'visible') void requestLock(true);
      else awaitLeader();
    }, LEADER_TIMEOUT_MS);
  };

  channel.onmessage = ({ data }: MessageEvent<ChannelMessage>) => {
    if (data.kind === 'hello') {
      if (leading) post({ kind: 'heartbeat', live });
      return;
    }
    if (!leading) awaitLeader();
    onMessage(data.kind === 'heartbeat' ? { kind: 'live', live: data.live } : data);
  };

  if (locks) {
    post({ kind: 'hello' });
    awaitLeader();
    void requestLock(false);
  } else {
    lead();
  }
}

function tabContext(): TabContext {
  return { document, channel, locks: navigator.locks };
}
