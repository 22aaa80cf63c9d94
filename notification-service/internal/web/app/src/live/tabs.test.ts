import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { FakeBrowser, settled, type FakeTab } from '../testing/browser';
import { joinTabs, type TabMessage } from './tabs';

let browser: FakeBrowser;

beforeEach(() => {
  vi.useFakeTimers();
  browser = new FakeBrowser();
});
afterEach(() => void vi.useRealTimers());

/** A tab that has joined, what it received, and whether it follows the streams. */
async function join(tab: FakeTab) {
  const joined = { tab, received: [] as TabMessage[], follows: 0, missed: 0, send: (_: TabMessage) => {} };
  const { restart } = joinTabs(
    (send) => {
      joined.follows++;
      joined.send = send;
      return () => joined.follows--;
    },
    { onMessage: (message) => joined.received.push(message), onMissed: () => joined.missed++ },
    tab,
  );
  await settled();
  return Object.assign(joined, { restart });
}

/** Lets time pass in steps, so that messages arrive in between. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 500) {
    vi.advanceTimersByTime(Math.min(500, left));
    await settled();
  }
}

const event = (id: string): TabMessage => ({ kind: 'event', stream: 'notifications', event: { type: 'notification', data: {}, id } });

test('one tab follows the streams, and all receive every event once', async () => {
  const [first, second, third] = [await join(browser.open()), await join(browser.open()), await join(browser.open('hidden'))];
  expect([first.follows, second.follows, third.follows]).toEqual([1, 0, 0]);
  first.send(event('v1.a.1'));
  await settled();
  for (const tab of [first, second, third]) expect(tab.received.filter(({ kind }) => kind === 'event')).toEqual([event('v1.a.1')]);
});

test('when the leading tab is closed the next one follows at once', async () => {
  const tabs = [await join(browser.open()), await join(browser.open('hidden')), await join(browser.open())] as const;
  browser.close(tabs[0].tab);
  await settled();
  expect([tabs[1].follows, tabs[2].follows]).toEqual([1, 0]);
});

test('a tab that comes later learns at once whether the streams are live', async () => {
  const first = await join(browser.open());
  first.send({ kind: 'live', live: true });
  const second = await join(browser.open());
  expect(second.received).toEqual([{ kind: 'live', live: true }]);
});

describe('a frozen leader', () => {
  test('is replaced after 20 s by a tab that is looked at', async () => {
    const first = await join(browser.open());
    const second = await join(browser.open());
    first.tab.frozen = true;
    await pass(19_500);
    expect(second.follows).toBe(0);
    await pass(500);
    expect(second.follows).toBe(1);
  });

  test('is left alone by a tab that nobody looks at', async () => {
    const first = await join(browser.open());
    const second = await join(browser.open('hidden'));
    first.tab.frozen = true;
    await pass(60_000);
    expect([first.follows, second.follows]).toEqual([1, 0]);
    second.tab.look('visible');
    await pass(3_000);
    expect(second.follows).toBe(1);
  });

  test('gives up once it is thawed, and waits for its turn again', async () => {
    const first = await join(browser.open());
    const second = await join(browser.open());
    first.tab.frozen = true;
    await pass(20_000);
    first.tab.frozen = false;
    await pass(60_000);
    expect([first.follows, second.follows]).toEqual([0, 1]);
    browser.close(second.tab);
    await settled();
    expect(first.follows).toBe(1);
  });
});

test('a leader that is alive keeps the lead', async () => {
  const first = await join(browser.open('hidden'));
  const second = await join(browser.open());
  await pass(120_000);
  expect([first.follows, second.follows]).toEqual([1, 0]);
});

describe('a tab that becomes visible', () => {
  test('asks the leader whether it is alive, and replaces a silent one after 3 s', async () => {
    const first = await join(browser.open());
    const second = await join(browser.open('hidden'));
    first.tab.frozen = true;
    await pass(5_000);
    second.tab.look('visible');
    await pass(2_500);
    expect(second.follows).toBe(0);
    await pass(500);
    expect(second.follows).toBe(1);
  });

  test('leaves the lead to one that answers', async () => {
    const first = await join(browser.open());
    const second = await join(browser.open('hidden'));
    second.tab.look('visible');
    await pass(60_000);
    expect([first.follows, second.follows]).toEqual([1, 0]);
  });
});

describe('a page that goes into the back/forward cache', () => {
  test('gives the lead up at once, and takes its turn when it is shown again', async () => {
    const first = await join(browser.open());
    const second = await join(browser.open('hidden'));
    first.tab.leave();
    await settled();
    expect([first.follows, second.follows]).toEqual([0, 1]);
    first.tab.comeBack();
    await settled();
    expect([first.follows, second.follows]).toEqual([0, 1]);
    second.tab.leave();
    await settled();
    expect([first.follows, second.follows]).toEqual([1, 0]);
  });

  test("is in nobody's way while it waits for the lock", async () => {
    const first = await join(browser.open());
    const second = await join(browser.open());
    const third = await join(browser.open());
    second.tab.leave();
    browser.close(first.tab);
    await settled();
    expect([second.follows, third.follows]).toEqual([0, 1]);
    await pass(60_000);
    expect([second.follows, third.follows]).toEqual([0, 1]);
  });

  test('receives nothing, and fetches what it missed when it is shown again', async () => {
    const first = await join(browser.open());
    const second = await join(browser.open());
    second.tab.leave();
    first.send(event('v1.a.1'));
    await settled();
    expect(second.received).not.toContainEqual(event('v1.a.1'));
    second.tab.comeBack();
    await settled();
    expect(second.missed).toBe(1);
    first.send(event('v1.a.2'));
    await settled();
    expect(second.received).toContainEqual(event('v1.a.2'));
  });

  test('gives the lead up also when it is frozen with notice', async () => {
    const first = await join(browser.open());
    const second = await join(browser.open('hidden'));
    first.tab.document.dispatchEvent(new Event('freeze'));
    await settled();
    expect([first.follows, second.follows]).toEqual([0, 1]);
    first.tab.document.dispatchEvent(new Event('resume'));
    expect(first.missed).toBe(1);
    first.tab.comeBack(); // both events come
    expect(first.missed).toBe(1);
  });

  test('the first display of a page does not count as a return', async () => {
    const first = await join(browser.open());
    first.tab.comeBack();
    expect([first.missed, first.follows]).toEqual([0, 1]);
  });
});

test('the leader can follow the streams again, and keeps the lead', async () => {
  const first = await join(browser.open());
  const second = await join(browser.open());
  first.restart();
  second.restart();
  await settled();
  expect([first.follows, second.follows]).toEqual([1, 0]);
});

test('without locks every tab follows the streams itself', async () => {
  const alone = browser.open();
  const joined = await join(Object.assign(alone, { locks: undefined }));
  expect(joined.follows).toBe(1);
});
