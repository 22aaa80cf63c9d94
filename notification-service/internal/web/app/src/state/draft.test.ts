import { beforeEach, describe, expect, test, vi } from 'vitest';

import { ok, refused, report, serve } from '../testing/api';

/** The page, begun anew: only what is in the browser's storage is still there. */
async function begin() {
  vi.resetModules();
  const { reportService } = await import('../api/client');
  return { ...(await import('./draft')), reportService };
}

beforeEach(() => localStorage.clear());

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
      address: '',
      position: { latitude: 1, longitude: 2 },
    });
    const { key } = page.draft.value;
    const post = serve(page.reportService, 'POST', () => ok(report()));
    expect(await page.fileDraft()).toEqual(report());
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

  test.each([
    ['no answer', 0, ''],
    ['a service that is away', 503, 'unavailable'],
    ['a request that is being worked on', 409, 'request-running'],
  ])('with %s is tried again under the same key, also after a reload', async (_, status, kind) => {
    let page = await begin();
    page.updateDraft({ title: 'Dark crossing' });
    const { key } = page.draft.value;
    serve(page.reportService, 'POST', () => (status ? refused(status, kind) : Promise.reject(new TypeError('network'))));
    expect(await page.fileDraft()).toBeUndefined();
    page = await begin();
    expect(page.draft.value).toMatchObject({ key, title: 'Dark crossing', sending: true });
    const post = serve(page.reportService, 'POST', () => ok(report()));
    await page.fileDraft();
    expect(post.mock.lastCall?.[1].params?.header).toEqual({ 'Idempotency-Key': key });
  });

  test('with a refusal gives the form back, with what is wrong', async () => {
    const page = await begin();
    page.updateDraft({ title: 'Dark crossing' });
    serve(page.reportService, 'POST', () => refused(400, 'invalid-input', [{ pointer: '/title', detail: 'too short' }]));
    await page.fileDraft();
    expect(page.draft.value).toMatchObject({ title: 'Dark crossing', sending: false });
    expect(page.draftError.value).toMatchObject({ kind: 'invalid-input' });
  });
});

test('starting over forgets everything, and the fault', async () => {
  const page = await begin();
  page.updateDraft({ title: 'Dark crossing' });
  serve(page.reportService, 'POST', () => refused(400, 'invalid-input'));
  await page.fileDraft();
  const { key } = page.draft.value;
  page.discardDraft();
  expect(page.draft.value.title).toBe('');
  expect(page.draft.value.key).not.toBe(key);
  expect(page.draftError.value).toBeUndefined();
});
