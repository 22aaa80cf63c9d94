/** Parts of a browser that jsdom and Node 18 do not have, for tests of several tabs. */
import { vi } from 'vitest';

import type { TabContext } from '../live/tabs';

export { FakeEventSource } from '@cityconnect/stream/testing/event-source';

/** Lets pending promises run. */
export const settled = async () => {
  for (let i = 0; i < 10; i++) await Promise.resolve();
};

/** Gives jsdom a digest, as pages have it that came by TLS. It tells texts apart; more is not asked of it. */
export function stubDigest(): void {
  const digest = (_: string, data: Uint8Array) => {
    const sum = new Uint8Array(32);
    data.forEach((byte, i) => (sum[i % 32] = ((sum[i % 32] ?? 0) * 31 + byte + 1) % 256));
    return Promise.resolve(sum.buffer);
  };
  vi.stubGlobal('crypto', { getRandomValues: crypto.getRandomValues.bind(crypto), subtle: { digest } });
}

/** A browser whose tabs share locks and a channel. */
export class FakeBrowser {
  readonly tabs: FakeTab[] = [];
  private readonly queue: Waiting[] = [];
  private holder: Waiting | undefined;

  open(visibilityState: DocumentVisibilityState = 'visible'): FakeTab {
    const tab = new FakeTab(this, visibilityState);
    this.tabs.push(tab);
    return tab;
  }

  /** A frozen tab neither sends nor receives; what it holds it keeps. */
  post(from: FakeTab, message: unknown): void {
    if (from.frozen) return;
    for (const tab of this.tabs) if (tab !== from && !tab.frozen) queueMicrotask(() => tab.receive(message));
  }

  /** Closes a tab: its lock is free, and its place in the queue. */
  close(tab: FakeTab): void {
    tab.frozen = true;
    const waits = this.queue.findIndex((waiting) => waiting.tab === tab);
    if (waits >= 0) this.queue.splice(waits, 1);
    if (this.holder?.tab !== tab) return;
    this.holder = undefined;
    this.grant();
  }

  /** Does what LockManager.request does, for one name. */
  request(tab: FakeTab, options: LockOptions, held: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = { tab, held, resolve, reject };
      const aborted = () => reject(new DOMException('aborted', 'AbortError'));
      if (options.signal?.aborted) return aborted();
      options.signal?.addEventListener('abort', () => {
        if (this.holder === waiting) return;
        this.queue.splice(this.queue.indexOf(waiting), 1);
        aborted();
      });
      if (options.steal) {
        this.holder?.reject(new DOMException('stolen', 'AbortError'));
        this.holder = undefined;
        this.queue.unshift(waiting);
      } else this.queue.push(waiting);
      this.grant();
    });
  }

  private grant(): void {
    if (this.holder) return;
    const next = (this.holder = this.queue.shift());
    if (!next) return;
    void Promise.resolve()
      .then(() => next.held())
      .then(() => {
        if (this.holder !== next) return;
        this.holder = undefined;
        next.resolve();
        this.grant();
      });
  }
}

interface Waiting {
  tab: FakeTab;
  held(): Promise<void>;
  resolve(): void;
  reject(reason: unknown): void;
}

/** A tab, as `joinTabs` takes its context. */
export class FakeTab implements TabContext {
  /** Frozen without notice: no listener hears of it. */
  frozen = false;
  readonly window = new EventTarget();
  readonly document: EventTarget & { visibilityState: DocumentVisibilityState };
  readonly locks: TabContext['locks'];
  private channel: ReturnType<TabContext['openChannel']> | undefined;

  constructor(
    private readonly browser: FakeBrowser,
    visibilityState: DocumentVisibilityState,
  ) {
    this.document = Object.assign(new EventTarget(), { visibilityState });
    this.locks = {
      request: ((_: string, options: LockOptions, held: () => Promise<void>) =>
        browser.request(this, options, held)) as LockManager['request'],
    };
  }

  readonly openChannel = (): ReturnType<TabContext['openChannel']> => {
    const postMessage = (message: unknown) => this.browser.post(this, message);
    return (this.channel = { onmessage: null, postMessage, close: () => (this.channel = undefined) });
  };

  receive(message: unknown): void {
    this.channel?.onmessage?.call(undefined as never, { data: message } as MessageEvent);
  }

  look(visibilityState: DocumentVisibilityState): void {
    this.document.visibilityState = visibilityState;
    this.document.dispatchEvent(new Event('visibilitychange'));
  }

  /** Goes to another page; the browser keeps this one, as it is, for the way back. */
  leave(): void {
    this.window.dispatchEvent(new Event('pagehide'));
  }

  comeBack(): void {
    this.window.dispatchEvent(new Event('pageshow'));
  }
}
