import { beforeEach, expect, test, vi } from 'vitest';

const { sendLater } = vi.hoisted(() => ({ sendLater: vi.fn() }));
vi.mock('./outgoing', () => ({ sendLater }));

import { session } from '../state/session';
import { createChoice, ofDraft, sendChosen } from './chosen';
import { forgetAll, keepForSignIn, kept, newId } from './kept';

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

test('ids are UUIDs in the order in which they were made', () => {
  const ids = Array.from({ length: 50 }, newId);
  expect(ids.toSorted()).toEqual(ids);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});
