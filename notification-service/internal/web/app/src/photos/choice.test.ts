import { beforeEach, expect, test, vi } from 'vitest';

const { sendLater } = vi.hoisted(() => ({ sendLater: vi.fn() }));
vi.mock('./uploads', () => ({ sendLater }));

import { session } from '../state/session';
import { createChoice, ofDraft, sendChosen } from './choice';
import { forgetAll, keep, keepForSignIn, kept, newId, nextMoment } from './store';

const file = (text: string) => new File([text], 'IMG_0001.jpg', { type: 'image/jpeg' });
const signIn = (sub: string | undefined) => (session.value = sub ? { sub, name: sub, role: 'resident', expires_at: '' } : undefined);

beforeEach(async () => {
  URL.createObjectURL = () => 'blob:preview';
  URL.revokeObjectURL = () => {};
  sendLater.mockClear();
  await forgetAll();
  signIn('maria');
});

test('photos of a draft go to the report that it becomes, in order', async () => {
  const choice = createChoice(ofDraft('k1'));
  await choice.add([file('one'), file('two')]);
  choice.change(choice.list.value[0]!.id, { alt: 'A dark lamp' });
  await sendChosen(ofDraft('k1'), 'r1');
  expect(sendLater.mock.calls).toMatchObject([[{ report: 'r1', alt: 'A dark lamp' }], [{ report: 'r1', alt: '' }]]);
  expect(await kept('maria', 'r1')).toHaveLength(2);
  expect(await kept('maria', ofDraft('k1'))).toEqual([]);
});

test('what was chosen before signing in is of who signs in for it', async () => {
  signIn(undefined);
  await createChoice(ofDraft('k1')).add([file('one')]);
  await keepForSignIn();
  signIn('maria');
  expect(await kept('maria', ofDraft('k2'))).toEqual([]);
  expect(await kept('maria', ofDraft('k1'))).toMatchObject([{ user: 'maria' }]);
  expect(await kept('ben', ofDraft('k1'))).toEqual([]);
});

test('whoever signs in next finds no photos, and none are left', async () => {
  await createChoice('p').add([file('one')]);
  expect(await kept('ben')).toEqual([]);
  expect(await kept('maria')).toEqual([]);
});

test('ids are random, and have no time in them', () => {
  vi.useFakeTimers(); // the clock stands still
  const ids = Array.from({ length: 50 }, newId);
  vi.useRealTimers();
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(new Set(ids.map((id) => id.slice(0, 8))).size).toBe(50);
});

test('photos stay in the order in which they were chosen, also if the clock is set back', async () => {
  const choice = createChoice(ofDraft('k1'));
  await choice.add(Array.from({ length: 5 }, (_, n) => file(`${n}`)));
  vi.useFakeTimers({ now: Date.now() - 3_600_000, toFake: ['Date'] });
  await choice.add(Array.from({ length: 5 }, (_, n) => file(`${n + 5}`)));
  vi.useRealTimers();
  expect((await kept('maria', ofDraft('k1'))).map(({ id }) => id)).toEqual(choice.list.value.map(({ id }) => id));
});

test('what an earlier page has kept comes first, in its order', async () => {
  const earlier = (id: string) => ({ id, report: 'r1', user: 'maria', alt: '', quarters: 0, picture: file(id) });
  await keep({ ...earlier('c'), chosen: nextMoment() });
  await keep(earlier('0199-b'));
  await keep(earlier('0199-a'));
  expect((await kept('maria', 'r1')).map(({ id }) => id)).toEqual(['0199-a', '0199-b', 'c']);
});

/** A database as Firefox has it: a picture that it returned is gone once its upload is put again. */
function firefoxDatabase() {
  interface Row {
    id: string;
    picture: Pick<Blob, 'type' | 'arrayBuffer'>;
  }
  const rows = new Map<string, Row>();
  const answer = (result: unknown, on: 'onsuccess' | 'oncomplete') => {
    const asked: Record<string, unknown> = { result };
    queueMicrotask(() => (asked[on] as (() => void) | undefined)?.());
    return asked;
  };
  const stored = (row: Row): Row => {
    const picture = {
      type: row.picture.type,
      arrayBuffer: () =>
        rows.get(row.id)?.picture === picture ? Promise.resolve(new ArrayBuffer(3)) : Promise.reject(new DOMException('', 'AbortError')),
    };
    return { ...row, picture };
  };
  const store = {
    put: (row: Row) => ({ result: (rows.set(row.id, stored(row)), row.id) }),
    getAll: () => ({ result: [...rows.values()] }),
    delete: (id: string) => ({ result: rows.delete(id) }),
    clear: () => ({ result: rows.clear() }),
  };
  const transaction = () => Object.assign(answer(undefined, 'oncomplete'), { objectStore: () => store });
  return { open: () => answer({ transaction, close: () => {} }, 'onsuccess') };
}

test('a picture that was read from the browser can be sent after it is kept again', async () => {
  vi.stubGlobal('indexedDB', firefoxDatabase());
  const choice = createChoice(ofDraft('k1'));
  await choice.add([file('one')]);
  await sendChosen(ofDraft('k1'), 'r1');
  vi.unstubAllGlobals();
  const [[{ picture }]] = sendLater.mock.calls as [[{ picture: Blob }]];
  expect([picture instanceof Blob, picture.size, picture.type]).toEqual([true, 3, 'image/jpeg']);
});
