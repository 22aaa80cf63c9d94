import { beforeEach, describe, expect, test, vi } from 'vitest';

vi.mock('../ui/reload', () => ({ reloadPage: vi.fn() }));

import { deferred, ok, refused, report, serve } from '../testing/api';
import { stubDigest } from '../testing/browser';

/** The signed-in user, as the server knows it. */
let user: string | undefined;

/** The page, loaded again: only what is in the browser's storage is still there. */
async function begin() {
  vi.resetModules();
  const { notificationService, reportService } = await import('../api/client');
  serve(notificationService, 'GET', () => ok(user && { sub: user, name: user, role: 'resident', expires_at: '' }));
  const { loadSession, session } = await import('./session');
  const { reloadPage } = await import('../ui/reload');
  await loadSession();
  return { ...(await import('./draft')), reportService, notificationService, session, reloadPage };
}

/** Becomes a guest, where nobody is to. */
const nobody = () => Promise.reject(new Error('somebody is signed in'));

beforeEach(() => {
  localStorage.clear();
  stubDigest();
  user = 'maria';
});

test('what is written survives a reload', async () => {
  const before = await begin();
  before.updateDraft({ title: 'Dark crossing', category_id: 2, position: { latitude: 1, longitude: 2 } });
  const { draft } = await begin();
  expect(draft.value).toEqual(before.draft.value);
  expect(draft.value.title).toBe('Dark crossing');
});

describe('sending', () => {
  test('files what was written, and leaves an empty form with another key', async () => {
    const page = await begin();
    page.updateDraft({
      title: ' Dark crossing ',
      description: 'Since Monday',
      category_id: 2,
      privacy_level: 'public',
      position: { latitude: 1, longitude: 2 },
    });
    const { key } = page.draft.value;
    const post = serve(page.reportService, 'POST', () => ok(report()));
    expect(await page.fileDraft(nobody)).toEqual(report());
    expect(post.mock.lastCall).toEqual([
      '/reports',
      {
        params: { header: { 'Idempotency-Key': key } },
        body: { title: 'Dark crossing', description: 'Since Monday', category_id: 2, privacy_level: 'public', latitude: 1, longitude: 2 },
      },
    ]);
    expect(page.draft.value).toMatchObject({ title: '', sending: false });
    expect(page.draft.value.key).not.toBe(key);
  });

  test('says that only the city is to see it', async () => {
    const page = await begin();
    page.updateDraft({ title: 'Dark crossing', forCity: true });
    const post = serve(page.reportService, 'POST', () => ok(report()));
    await page.fileDraft(nobody);
    expect(post.mock.lastCall?.[1].body).toMatchObject({ visibility: 'officials' });
  });

  test('names nobody who has not chosen to be named', async () => {
    const page = await begin();
    expect(page.draft.value.privacy_level).toBeUndefined();
    const post = serve(page.reportService, 'POST', () => ok(report()));
    await page.fileDraft(nobody);
    expect(post.mock.lastCall?.[1].body).toMatchObject({ privacy_level: 'anonymous' });
  });

  test.each([
    ['no answer', 0, ''],
    ['a service that is away', 503, 'unavailable'],
    ['a request that is being worked on', 409, 'request-running'],
  ])('with %s is tried again under the same key, also after a reload', async (_, status, kind) => {
    let page = await begin();
    page.updateDraft({ title: 'Dark crossing' });
    const { key } = page.draft.value;
    serve(page.reportService, 'POST', () => (status ? refused(status, kind) : Promise.reject(new TypeError('network'))));
    expect(await page.fileDraft(nobody)).toBeUndefined();
    page = await begin();
    expect(page.draft.value).toMatchObject({ key, title: 'Dark crossing', sending: true });
    const post = serve(page.reportService, 'POST', () => ok(report()));
    await page.fileDraft(nobody);
    expect(post.mock.lastCall?.[1].params?.header).toEqual({ 'Idempotency-Key': key });
  });

  test('with a refusal gives the form back, with what is wrong', async () => {
    const page = await begin();
    page.updateDraft({ title: 'Dark crossing' });
    serve(page.reportService, 'POST', () => refused(400, 'invalid-input', [{ pointer: '/title', detail: 'too short' }]));
    await page.fileDraft(nobody);
    expect(page.draft.value).toMatchObject({ title: 'Dark crossing', sending: false });
    expect(page.draftError.value).toMatchObject({ kind: 'invalid-input' });
  });
});

describe('mails about an anonymous report', () => {
  const write = { title: 'Dark crossing', privacy_level: 'anonymous', mail: true } as const;

  test('are asked for by themselves, once it is filed', async () => {
    const page = await begin();
    page.updateDraft(write);
    const post = serve(page.reportService, 'POST', () => ok(report()));
    const put = serve(page.notificationService, 'PUT', () => ok(undefined));
    await page.fileDraft(nobody);
    expect(put.mock.calls).toEqual([['/me/mail-consents', { body: { report_id: 'r1', mail: true } }]]);
    expect(JSON.stringify(post.mock.lastCall)).not.toContain('mail');
  });

  test.each([
    ['nobody asked for them', { ...write, mail: false }],
    ['the report is public', { ...write, privacy_level: 'public' as const }],
  ])('are not asked for when %s', async (_, part) => {
    const page = await begin();
    page.updateDraft(part);
    serve(page.reportService, 'POST', () => ok(report()));
    const put = serve(page.notificationService, 'PUT', () => ok(undefined));
    expect(await page.fileDraft(nobody)).toEqual(report());
    expect(put).not.toHaveBeenCalled();
  });

  test('are asked for again when there was no answer, also after a reload', async () => {
    let page = await begin();
    page.updateDraft(write);
    const { key } = page.draft.value;
    serve(page.reportService, 'POST', () => ok(report()));
    serve(page.notificationService, 'PUT', () => Promise.reject(new TypeError('network')));
    expect(await page.fileDraft(nobody)).toBeUndefined();
    page = await begin();
    const post = serve(page.reportService, 'POST', () => ok(report()));
    const put = serve(page.notificationService, 'PUT', () => ok(undefined));
    expect(await page.fileDraft(nobody)).toEqual(report());
    expect(post.mock.lastCall?.[1].params?.header).toEqual({ 'Idempotency-Key': key });
    expect(put).toHaveBeenCalledOnce();
  });

  test('that are refused leave the report filed', async () => {
    const page = await begin();
    page.updateDraft(write);
    serve(page.reportService, 'POST', () => ok(report()));
    serve(page.notificationService, 'PUT', () => refused(404, 'not-found'));
    expect(await page.fileDraft(nobody)).toEqual(report());
    expect(page.draft.value.title).toBe('');
  });
});

describe('as another user', () => {
  test('is not sent: the page is loaded again instead', async () => {
    const page = await begin();
    page.updateDraft({ title: 'I am scared of him', privacy_level: 'anonymous' });
    const post = serve(page.reportService, 'POST', () => ok(report()));
    user = 'james'; // signed in in another tab
    expect(await page.fileDraft(nobody)).toBeUndefined();
    expect(post).not.toHaveBeenCalled();
    expect(page.reloadPage).toHaveBeenCalledOnce();
  });

  test('is not sent again after there was no answer', async () => {
    let page = await begin();
    page.updateDraft({ title: 'I am scared of him' });
    serve(page.reportService, 'POST', () => Promise.reject(new TypeError('network')));
    await page.fileDraft(nobody);
    expect(page.draft.value.sending).toBe(true);
    user = 'james';
    page = await begin();
    expect(page.draft.value).toMatchObject({ title: '', sending: false });
  });

  test('is not sent while the server does not say who is signed in', async () => {
    const page = await begin();
    page.updateDraft({ title: 'Dark crossing' });
    const post = serve(page.reportService, 'POST', () => ok(report()));
    serve(page.notificationService, 'GET', () => refused(503, 'unavailable'));
    await page.fileDraft(nobody);
    expect(post).not.toHaveBeenCalled();
    expect(page.draft.value).toMatchObject({ title: 'Dark crossing', sending: true });
  });

  test('is not sent after the session ended, and is there for its author', async () => {
    let page = await begin();
    page.updateDraft({ title: 'Dark crossing' });
    user = undefined;
    await page.fileDraft(nobody);
    expect([page.session.value, page.draft.value.title]).toEqual([undefined, '']);
    user = 'maria';
    page = await begin();
    expect(page.draft.value).toMatchObject({ title: 'Dark crossing', sending: false });
  });
});

test('who presses twice sends once', async () => {
  const page = await begin();
  page.updateDraft({ title: 'Dark crossing' });
  const answer = deferred<ReturnType<typeof ok>>();
  const post = serve(page.reportService, 'POST', () => answer.promise);
  const both = [page.fileDraft(nobody), page.fileDraft(nobody)];
  answer.resolve(ok(report()));
  await Promise.all(both);
  expect(post).toHaveBeenCalledOnce();
});

test('starting over forgets everything, and the fault', async () => {
  const page = await begin();
  page.updateDraft({ title: 'Dark crossing' });
  serve(page.reportService, 'POST', () => refused(400, 'invalid-input'));
  await page.fileDraft(nobody);
  const { key } = page.draft.value;
  page.discardDraft();
  expect(page.draft.value.title).toBe('');
  expect(page.draft.value.key).not.toBe(key);
  expect(page.draftError.value).toBeUndefined();
});
