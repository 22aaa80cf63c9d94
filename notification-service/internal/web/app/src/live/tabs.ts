/**
 * One set of streams for all tabs of a browser: the tab that holds a Web Lock
 * follows them and tells the others over a BroadcastChannel. When it goes, the
 * lock passes on, and the next tab resumes where the last event left off.
 *
 * Web Locks and not a SharedWorker, because Chrome on Android lacks the
 * latter. Without Web Locks (a page that came by plain HTTP from another
 * host), every tab follows the streams itself.
 */
import type { StreamEvent } from './stream';

export type StreamName = 'mine' | 'feed';
export type Tidings =
  | { kind: 'event'; stream: StreamName; event: StreamEvent }
  | { kind: 'live'; live: boolean }
  | { kind: 'changed'; what: 'session' | 'notifications' };

type Message = Tidings | { kind: 'hello' } | { kind: 'beat'; live: boolean };

/** Follows the streams until the returned function is called. */
export type Follow = (tell: (tidings: Tidings) => void) => () => void;

const LOCK = 'cityconnect.streams';
/** The leading tab says this often that it is alive. */
const BEAT_MS = 5_000;
/** After this long without a word it is taken for frozen, and replaced. */
const FROZEN_MS = 20_000;

const channel = new BroadcastChannel(LOCK);

/** Tells the other tabs, whether this one joined them or not. */
export function tellOthers(tidings: Tidings): void {
  channel.postMessage(tidings);
}

/** What a tab has of its browser; tests bring their own. */
export interface Surroundings {
  document: Pick<Document, 'visibilityState'>;
  channel: Pick<BroadcastChannel, 'postMessage' | 'onmessage'>;
  /** Absent where the page came by plain HTTP. */
  locks: Pick<LockManager, 'request'> | undefined;
}

export function joinTabs(
  follow: Follow,
  hear: (tidings: Tidings) => void,
  { document, channel, locks }: Surroundings = surroundings(),
): void {
  const post = (message: Message) => channel.postMessage(message);
  let leading = false;
  let live = false;
  let frozen: number | undefined;
  let waiting = new AbortController();

  const tell = (tidings: Tidings) => {
    if (tidings.kind === 'live') live = tidings.live;
    post(tidings);
    hear(tidings);
  };

  /** Leads until the lock is stolen; the promise that holds it never ends. */
  const lead = () => {
    clearTimeout(frozen);
    leading = true;
    const stop = follow(tell);
    post({ kind: 'beat', live });
    const beat = setInterval(() => post({ kind: 'beat', live }), BEAT_MS);
    return () => {
      leading = false;
      clearInterval(beat);
      stop();
    };
  };

  const contend = async (steal: boolean) => {
    waiting.abort();
    const mine = (waiting = new AbortController());
    let resign = () => {};
    const held = () => {
      resign = lead();
      return new Promise<never>(() => {});
    };
    try {
      await locks?.request(LOCK, steal ? { steal } : { signal: mine.signal }, held);
    } catch {
      if (mine !== waiting) return; // gave the place in the line up for stealing
      // Another tab thought us frozen and took over; line up again.
      resign();
      expectBeat();
      void contend(false);
    }
  };

  /** A frozen leader keeps its lock, so whoever is looked at takes it away. */
  const expectBeat = () => {
    clearTimeout(frozen);
    frozen = window.setTimeout(() => {
      if (document.visibilityState === 'visible') void contend(true);
      else expectBeat();
    }, FROZEN_MS);
  };

  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.kind === 'hello') {
      if (leading) post({ kind: 'beat', live });
      return;
    }
    if (!leading) expectBeat();
    hear(data.kind === 'beat' ? { kind: 'live', live: data.live } : data);
  };

  if (locks) {
    post({ kind: 'hello' });
    expectBeat();
    void contend(false);
  } else {
    lead();
  }
}

function surroundings(): Surroundings {
  return { document, channel, locks: navigator.locks };
}
