import { render, type ComponentChild } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, describe, expect, test, vi } from 'vitest';

vi.mock('../ui/reload', () => ({ reloadPage: vi.fn() }));
vi.mock('../live/live', () => ({ onStream: () => {}, onChange: () => {}, announceChange: vi.fn(), restartLive: vi.fn() }));

import { notificationService, reportService } from '../api/client';
import { Privacy } from '../screens/create/privacy';
import { Guests } from '../screens/ops/guests';
import { Votes } from '../screens/report/votes';
import { announceChange } from '../live/live';
import { config } from '../state/config';
import { discardDraft, draft, draftError, fileDraft, updateDraft } from '../state/draft';
import { guestRules } from '../state/guests';
import { takeOver } from '../state/handover';
import { createReport } from '../state/report';
import { endSession, session, sessionEnded, type Session } from '../state/session';
import { openUserData, removeUserData } from '../state/storage';
import { toasts } from '../state/toasts';
import { ok, refused, report, serve } from '../testing/api';
import { settled, stubDigest } from '../testing/browser';
import { explain } from '../ui/problem';
import { reloadPage } from '../ui/reload';
import { now } from '../ui/time';
import { GuestAccount } from './account';
import { CodeForm } from './code-form';
import { becomeGuest, enterCode, goAlong } from './state';
import { TakeOver } from './take-over';
import { TakeWithYou } from './take-with-you';
import { WithoutAccount } from './without-account';

const guest: Session = { sub: 'g1', name: '', role: 'resident', guest: true, expires_at: '2030-01-01T00:00:00Z' };
const account: Session = { sub: 'ann', name: 'Ann', role: 'resident', expires_at: '2030-01-01T00:00:00Z' };
const rules = { open: true, votes: false, comments: false, reports_per_day: 5 };

let root: HTMLElement;
const wait = async () => {
  for (let i = 0; i < 6; i++) await act(settled);
};
const show = async (what: ComponentChild) => {
  await act(() => render(what, root));
  await wait();
};
const button = (name: string) => [...root.querySelectorAll('button')].find(({ textContent }) => textContent.includes(name));
const press = async (name: string) => {
  await act(() => button(name)!.click());
  await wait();
};

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  stubDigest();
  HTMLDialogElement.prototype.showModal = vi.fn(); // jsdom has none
  root = document.createElement('div');
  document.body.replaceChildren(root);
  removeUserData();
  discardDraft();
  session.value = undefined;
  sessionEnded.value = undefined;
  guestRules.value = rules;
  config.guests = true;
  toasts.value = [];
  vi.mocked(reloadPage).mockClear();
  vi.mocked(announceChange).mockClear();
  serve(notificationService, 'GET', (path) => {
    if (path === '/session') return ok(session.value);
    return ok({ notifications: [], unread_count: 0, last_event_id: '', only_own: false, follows: [] });
  });
  serve(reportService, 'GET', (path) => ok(path === '/guests' ? rules : { reports: [report(), report()] }));
});

describe('a report without an account', () => {
  const written = { title: 'Lamp is dark', category_id: 2, privacy_level: 'public' as const, asGuest: true };

  test('makes a guest when it is sent, and not before, and has no name', async () => {
    const post = serve(reportService, 'POST', (path) => ok(path === '/guests' ? guest : report()));
    updateDraft({ title: 'Lamp is dark' });
    expect(post).not.toHaveBeenCalled();
    updateDraft(written);
    expect(await fileDraft(becomeGuest)).toEqual(report());
    expect(post.mock.calls.map(([path]) => path)).toEqual(['/guests', '/reports']);
    expect(post.mock.lastCall?.[1].body).toMatchObject({ title: 'Lamp is dark', privacy_level: 'anonymous' });
    expect([session.value?.sub, draft.value.title]).toEqual(['g1', '']);
    expect(announceChange).toHaveBeenCalledWith('session');
  });

  test('is the guest’s own while the city does not answer, and is sent again as theirs', async () => {
    let answers = false;
    const post = serve(reportService, 'POST', (path) =>
      path === '/guests' ? ok(guest) : answers ? ok(report()) : refused(503, 'unavailable'),
    );
    updateDraft(written);
    await fileDraft(becomeGuest);
    expect(draft.value).toMatchObject({ title: 'Lamp is dark', sending: true, asGuest: false });
    expect(JSON.stringify({ ...localStorage })).toContain('Lamp is dark');
    expect(JSON.stringify({ ...sessionStorage })).not.toContain('Lamp is dark');
    answers = true;
    await fileDraft(becomeGuest);
    expect(post.mock.calls.map(([path]) => path)).toEqual(['/guests', '/reports', '/reports']);
  });

  test.each([
    [429, 'too-many-guests', 'Try again in an hour, or sign in'],
    [403, 'guests-closed', 'switched off at the moment'],
    [404, 'no-guests', 'takes no reports without an account'],
  ])('that is refused (%i %s) is kept, and it says what to do', async (status, kind, words) => {
    serve(reportService, 'POST', () => refused(status, kind));
    updateDraft(written);
    expect(await fileDraft(becomeGuest)).toBeUndefined();
    expect(draft.value).toMatchObject({ title: 'Lamp is dark', sending: false });
    expect(explain(draftError.value)).toContain(words);
    expect(session.value).toBeUndefined();
  });

  test('is sent again as long as nobody answers who is to become a guest', async () => {
    serve(reportService, 'POST', () => refused(502, 'unavailable'));
    updateDraft(written);
    await fileDraft(becomeGuest);
    expect(draft.value).toMatchObject({ title: 'Lamp is dark', sending: true, asGuest: true });
  });

  test('beyond what a guest may send in a day is kept', async () => {
    session.value = guest;
    serve(reportService, 'POST', () => refused(429, 'guest-quota'));
    updateDraft(written);
    await fileDraft(becomeGuest);
    expect(draft.value).toMatchObject({ title: 'Lamp is dark', sending: false });
    expect(explain(draftError.value)).toContain('Send this one tomorrow, or sign in');
  });

  test('that nobody has sent yet goes along when another tab has made a guest, and not to an account', async () => {
    updateDraft(written);
    const get = serve(notificationService, 'GET', () => ok(account));
    await goAlong();
    expect(takeOver()).toEqual({});
    get.mockImplementation(async () => ok(guest));
    await goAlong();
    expect(takeOver().draft).toMatchObject({ title: 'Lamp is dark' });
  });

  test('shows no name, and does not ask for one', async () => {
    await show(<Privacy />);
    expect(root.querySelector('[name=privacy]')).toBeNull();
    expect(root.textContent).toContain('Without an account your report is anonymous');
    guestRules.value = { ...rules, open: false };
    await wait();
    expect(root.querySelectorAll('[name=privacy]')).toHaveLength(2);
  });
});

describe('a guest whose session ends', () => {
  test('goes on writing without a session, and reads why', async () => {
    session.value = guest;
    await openUserData(guest.sub);
    updateDraft({ title: 'Lamp is dark' });
    endSession();
    expect([session.value, draft.value.title, sessionEnded.value]).toEqual([undefined, 'Lamp is dark', 'guest.ended']);
    expect(JSON.stringify({ ...sessionStorage })).toContain('Lamp is dark');
  });

  test('because an account has the reports, reads that, also at the first request', () => {
    endSession('guest-adopted');
    expect(sessionEnded.value).toBe('guest.adopted');
  });

  test('does not send again on its own what was on its way', async () => {
    session.value = guest;
    updateDraft({ title: 'Lamp is dark', sending: true });
    serve(notificationService, 'GET', () => ok(undefined));
    const post = serve(reportService, 'POST', () => ok(guest));
    await fileDraft(becomeGuest);
    expect(post).not.toHaveBeenCalled();
    expect(draft.value).toMatchObject({ title: 'Lamp is dark', sending: false });
  });

  test('at their own wish reads first which reports are lost', async () => {
    session.value = guest;
    const where = { error: undefined, onEnd: vi.fn(), onClose: vi.fn() };
    await show(<GuestAccount {...where} />);
    await press('End here');
    expect(where.onEnd).not.toHaveBeenCalled();
    expect(root.textContent).toContain('You have 2 reports in this browser.');
    expect(document.activeElement?.textContent).toBe('End here for good?');
    await press('End, and lose them here');
    expect(where.onEnd).toHaveBeenCalledOnce();
  });
});

describe('a code', () => {
  const at = Date.parse('2026-01-01T12:00:00Z');

  test('is shown with the minutes that are left, is spoken once, and expires in words', async () => {
    vi.useFakeTimers({ now: at, toFake: ['Date'] });
    now.value = at;
    serve(reportService, 'POST', () => ok({ code: '7K3QF-M2XWD', expires_at: '2026-01-01T12:09:30Z' }));
    await show(<TakeWithYou />);
    expect(root.textContent).toContain('If you lose the device');
    await press('Show a code');
    expect(root.querySelector('.guest-code code')?.textContent).toBe('7K3QF-M2XWD');
    const spoken = () => root.querySelector('[role=status]')?.textContent;
    expect(spoken()).toBe('Your code: 7 K 3 Q F M 2 X W D');
    const pass = async (ms: number) => {
      vi.setSystemTime(at + ms);
      await act(() => void (now.value = at + ms));
    };
    for (const [ms, words] of [
      [0, 'Valid for 9 more minutes'],
      [8 * 60_000, 'Valid for 1 more minute.'],
      [9 * 60_000, 'Valid for less than a minute'],
    ] as const) {
      await pass(ms);
      expect(root.textContent).toContain(words);
      expect(spoken()).toBe('Your code: 7 K 3 Q F M 2 X W D');
    }
    await pass(10 * 60_000);
    expect(spoken()).toBe('This code has expired.');
    expect(root.textContent).not.toContain('7K3QF');
    vi.useRealTimers();
  });

  test.each([
    ['unknown-code', 'Compare it with the other device'],
    ['used-code', 'used already'],
    ['expired-code', 'has expired'],
    ['too-many-requests', 'too much at once'],
  ])('that is refused (%s) says what to do', async (kind, words) => {
    serve(reportService, 'POST', () => refused(404, kind));
    await expect(enterCode('AAAAA-AAAAA').catch((error: unknown) => Promise.reject(new Error(explain(error))))).rejects.toThrow(words);
  });

  test('is entered where the browser is nobody’s; a guest’s is not replaced, and an account need not', async () => {
    await show(<CodeForm />);
    expect(root.querySelector('input')).not.toBeNull();
    await act(() => void (session.value = guest));
    await wait();
    expect(root.textContent).toContain('already has 2 reports of its own');
    expect(root.querySelector('input')).toBeNull();
    await act(() => void (session.value = account));
    expect(root.textContent).toContain('sign out first');
  });
});

describe('whether an account takes the reports over', () => {
  const asked = (found: () => ReturnType<typeof ok>) => {
    session.value = { ...account, adoptable: true };
    serve(reportService, 'GET', () => found());
    return {
      post: serve(reportService, 'POST', () => ok({ reports: 3 })),
      remove: serve(reportService, 'DELETE', () => ok(undefined)),
    };
  };

  test('is asked with how many, and a yes ends it', async () => {
    const { post, remove } = asked(() => ok({ reports: 3 }));
    await show(<TakeOver />);
    expect(root.textContent).toContain('3 reports were sent from this browser without an account');
    await press('Take them over');
    expect([post.mock.calls.length, remove.mock.calls.length, session.value?.adoptable]).toEqual([1, 0, undefined]);
    expect(toasts.value[0]?.text).toBe('3 reports are in your account now.');
  });

  test('ends with a no, too', async () => {
    const { post, remove } = asked(() => ok({ reports: 1 }));
    await show(<TakeOver />);
    expect(root.textContent).toContain('1 report was sent');
    await press('Leave them');
    expect([post.mock.calls.length, remove.mock.calls.length, session.value?.adoptable]).toEqual([0, 1, undefined]);
  });

  test('stays open where the answer did not arrive, and without one comes again with the next page', async () => {
    const { post, remove } = asked(() => ok({ reports: 1 }));
    post.mockImplementation(async () => refused(503, 'unavailable'));
    await show(<TakeOver />);
    await press('Take them over');
    expect(root.querySelector('[role=alert]')).not.toBeNull();
    expect(session.value?.adoptable).toBe(true);
    await act(() => root.querySelector<HTMLElement>('[aria-label=Close]')!.click());
    expect([session.value?.adoptable, remove.mock.calls.length]).toEqual([undefined, 0]);
  });

  test('is not asked where there is nothing', async () => {
    const none = asked(() => ok({ reports: 0 }));
    await show(<TakeOver />);
    expect([root.querySelector('dialog'), none.remove.mock.calls.length, session.value?.adoptable]).toEqual([null, 1, undefined]);
    asked(() => refused(404, 'no-guest'));
    await show(null);
    await show(<TakeOver />);
    expect([root.querySelector('dialog'), session.value?.adoptable]).toEqual([null, undefined]);
  });
});

test('beside signing in is the way without an account, as long as it is open', async () => {
  await show(<WithoutAccount to="new?step=4" />);
  expect([...root.querySelectorAll('a')].map((a) => a.getAttribute('href'))).toEqual(['/new?step=4', '/sign-in/code']);
  serve(reportService, 'GET', () => ok({ ...rules, open: false }));
  await show(null);
  await show(<WithoutAccount to="mine" />);
  expect(root.textContent).toContain('switched off at the moment');
  expect([...root.querySelectorAll('a')].map((a) => a.getAttribute('href'))).toEqual(['/sign-in/code']);
  session.value = guest;
  await show(null);
  await show(<WithoutAccount to="mine" />);
  expect(root.textContent).toContain('you are asked whether your account takes these reports over');
});

test('a guest’s vote leads to the sign-in and is kept, unless guests vote', async () => {
  session.value = guest;
  const post = serve(reportService, 'POST', () => ok({ report_id: 'r1', score: 1, version: 2, vote_type: 'upvote' }));
  const open = createReport('r1');
  open.report.value = report();
  await show(<Votes open={open} report={report()} />);
  expect(root.textContent).toContain('You sign in first');
  await press('Matters to me too');
  expect([post.mock.calls.length, takeOver().vote]).toEqual([0, { report: 'r1', type: 'upvote' }]);
  await act(() => void (guestRules.value = { ...rules, votes: true }));
  await show(<Votes open={open} report={report()} />);
  expect(root.textContent).not.toContain('You sign in first');
  await press('Matters to me too');
  expect(post).toHaveBeenCalledOnce();
});

test('operators switch guests off with a reason, and auditors read it', async () => {
  let switched: { open: boolean; reason?: string } = { open: true };
  serve(reportService, 'GET', (path) => ok(path === '/guests' ? rules : switched));
  const put = serve(reportService, 'PUT', (_, { body }) => ok((switched = body as typeof switched)));
  session.value = { ...account, role: 'auditor' };
  await show(<Guests />);
  expect(root.textContent).toContain('Reporting without an account is on.');
  expect(root.textContent).toContain('A guest sends 5 reports a day at most.');
  expect(root.querySelector('button')).toBeNull();
  session.value = { ...account, role: 'operator' };
  await show(null);
  await show(<Guests />);
  await press('Switch off');
  const field = root.querySelector<HTMLInputElement>('dialog input')!;
  await act(() => {
    field.value = 'A flood';
    field.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await act(() => field.form!.requestSubmit());
  await wait();
  expect(put.mock.lastCall).toEqual(['/admin/reports/guests', { body: { open: false, reason: 'A flood' } }]);
  expect(root.textContent).toContain('Reporting without an account is off.');
});

// Last: the page is loaded again in the middle of it.
test('a report goes along where another tab was faster', async () => {
  serve(reportService, 'POST', () => refused(409, 'signed-in'));
  updateDraft({ title: 'Lamp is dark', asGuest: true });
  void fileDraft(becomeGuest);
  await vi.waitFor(() => expect(reloadPage).toHaveBeenCalled());
  expect(takeOver().draft).toMatchObject({ title: 'Lamp is dark', sending: false });
});
