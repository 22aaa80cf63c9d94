import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

vi.mock('../ui/reload', () => ({ reloadPage: vi.fn() }));

import { ok, refused, serve } from '../testing/api';
import { FakeBrowser, FakeEventSource, settled, stubDigest } from '../testing/browser';
import { joinTabs, type TabMessage } from './tabs';

let browser: FakeBrowser;
/** Whether the server knows the cookie. */
let signedIn: boolean;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('EventSource', FakeEventSource);
  stubDigest();
  FakeEventSource.made = [];
  browser = new FakeBrowser();
  signedIn = true;
});
afterEach(() => void vi.useRealTimers());

/** A tab of the page as maria's, live. */
async function open() {
  vi.resetModules();
  const { notificationService } = await import('../api/client');
  serve(notificationService, 'GET', () =>
    signedIn ? ok({ sub: 'maria', name: 'Maria', role: 'resident', expires_at: '' }) : refused(401, 'invalid-token'),
  );
  const { loadSession, session, sessionEnded } = await import('../state/session');
  const live = await import('./live');
  await loadSession();
  const tab = browser.open();
  const events: string[] = [];
  live.onStream('notifications', ({ type }) => events.push(type));
  live.onStream('feed', ({ type }) => events.push(`feed ${type}`));
  live.startLive(tab);
  await settled();
  return { ...live, session, sessionEnded, tab, events };
}

/** The streams that are open or being opened. */
const streams = () => FakeEventSource.made.filter(({ readyState }) => readyState !== FakeEventSource.CLOSED);
const urls = () => streams().map(({ url }) => url);

/** Another tab of the same browser. */
async function otherTab() {
  const received: TabMessage[] = [];
  let send = (_: TabMessage) => {};
  joinTabs(
    (tell) => {
      send = tell;
      return () => {};
    },
    { onMessage: (message) => received.push(message), onMissed: () => {} },
    browser.open(),
  );
  await settled();
  return { received, send: (message: TabMessage) => send(message) };
}

test('the leader is live once both its streams are', async () => {
  const page = await open();
  expect(urls()).toEqual(['/notifications/stream', '/feed/stream']);
  streams()[1]?.emit('ready', '');
  expect(page.connection.value.state).toBe('connecting');
  streams()[0]?.emit('ready', 'v1.a.1');
  expect(page.connection.value.state).toBe('live');
  streams()[1]?.fail(false);
  expect(page.connection.value.state).toBe('reconnecting');
});

test('a new leader resumes where the last event left off', async () => {
  const other = await otherTab();
  const page = await open();
  other.send({ kind: 'event', stream: 'notifications', event: { type: 'notification', data: {}, id: 'v1.a.7' } });
  await settled();
  expect(page.events).toEqual(['notification']);
  page.tab.look('visible');
  for (const tab of browser.tabs) if (tab !== page.tab) browser.close(tab);
  await settled();
  expect(urls()).toEqual(['/notifications/stream?last_event_id=v1.a.7', '/feed/stream']);
});

test('what was missed in the back/forward cache is fetched again', async () => {
  const page = await open();
  page.tab.leave();
  expect(urls()).toEqual([]);
  page.tab.comeBack();
  await settled();
  expect(page.events).toEqual(['reset', 'feed reset']);
  expect(urls()).toEqual(['/notifications/stream', '/feed/stream']);
});

describe('when the session ends', () => {
  async function ends() {
    const page = await open();
    const other = await otherTab();
    for (const stream of streams()) stream.emit('ready', 'v1.a.1');
    signedIn = false;
    streams()[0]?.fail(true);
    await vi.advanceTimersByTimeAsync(2_000);
    return { page, other };
  }

  test('the leader follows the feed alone, and is live', async () => {
    const { page } = await ends();
    expect([page.session.value, page.sessionEnded.value]).toEqual([undefined, 'session.ended']);
    expect(urls()).toEqual(['/feed/stream']);
    streams()[0]?.emit('ready', '');
    expect(page.connection.value.state).toBe('live');
  });

  test('the other tabs get it', async () => {
    const { other } = await ends();
    await settled();
    expect(other.received).toContainEqual({ kind: 'session-ended', adopted: false });
  });

  test('a tab that gets it shows it, and asks nothing', async () => {
    const other = await otherTab();
    const page = await open();
    other.send({ kind: 'session-ended', adopted: false });
    await settled();
    expect([page.session.value, page.sessionEnded.value]).toEqual([undefined, 'session.ended']);
  });

  test('because an account has taken over the guest, every tab says so', async () => {
    const page = await open();
    const other = await otherTab();
    streams()[0]?.emit('ready', 'v1.a.1');
    signedIn = false; // the answer names no reason: another tab has had it
    streams()[0]?.emit('reset', '', { reason: 'guest_adopted' });
    await settled();
    expect([page.session.value, page.sessionEnded.value, page.events]).toEqual([undefined, 'guest.adopted', ['ready']]);
    expect(other.received).toContainEqual({ kind: 'session-ended', adopted: true });
    await vi.advanceTimersByTimeAsync(2_000);
    expect(urls()).toEqual(['/feed/stream']);
  });
});
