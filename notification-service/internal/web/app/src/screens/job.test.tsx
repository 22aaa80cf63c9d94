import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { Failure, reportService, type Job } from '../api/client';
import { setLanguage } from '../lang/i18n';
import { ok, refused, serve } from '../testing/api';
import { settled } from '../testing/browser';
import { JobScreen } from './job';

vi.mock('../map/map', () => ({ Map: () => null }));
vi.mock('../photos/scale', () => ({ scaled: (file: File) => Promise.resolve(file) }));
const send = vi.hoisted(() => vi.fn(() => Promise.resolve(true)));
vi.mock('../photos/send', () => ({ send }));

const TOKEN = 'ccj_ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const headers = { Authorization: `Bearer ${TOKEN}` };
const job: Job = {
  report_id: 'r1',
  number: '0000-0001',
  title: 'Dark lamp',
  category_name: 'Street lights',
  photos: ['p1'],
  firm_name: 'Lampu Jaya',
  department_name: 'Lights',
  text: 'The third lamp.',
  ends_at: '2030-01-01T17:00:00Z',
};

let root: HTMLElement;
const show = async () => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  await act(() => render(<JobScreen path={['j', TOKEN]} />, root));
  for (let i = 0; i < 4; i++) await act(settled);
};

/** Says that it is done, with a photo. */
const finish = async () => {
  await act(() => root.querySelectorAll<HTMLInputElement>('input[type=radio]')[1]!.click());
  const files = root.querySelector<HTMLInputElement>('input[type=file]')!;
  Object.defineProperty(files, 'files', { value: [photo] });
  await act(() => void files.dispatchEvent(new Event('change', { bubbles: true })));
  for (let i = 0; i < 4; i++) await act(settled);
  await act(async () => {
    root.querySelector('form')!.requestSubmit();
    for (let i = 0; i < 4; i++) await settled();
  });
};
const photo = new File(['x'], 'after.jpg', { type: 'image/jpeg' });

beforeEach(async () => {
  send.mockClear();
  URL.createObjectURL = vi.fn(() => 'blob:x'); // jsdom has none
  URL.revokeObjectURL = vi.fn();
  await setLanguage('en');
});

test.each([
  ['en', 'We take it', 'It is done', 'Send', 'The city has it'],
  ['id', 'Kami kerjakan', 'Sudah selesai', 'Kirim', 'Kota sudah menerimanya'],
])('in %s a firm says how far it is, with photos, and only then something changes', async (tag, takes, done, submit, thanks) => {
  await setLanguage(tag);
  const get = serve(reportService, 'GET', () => ok(job));
  const post = serve(reportService, 'POST', () => ok({ ...job, said: 'done' }));
  await show();
  expect(get.mock.calls).toEqual([['/reports/job', { headers }]]);
  for (const words of ['Dark lamp', 'The third lamp.', 'Lights', takes, submit]) expect(root.textContent).toContain(words);
  expect(post).not.toHaveBeenCalled();
  expect(root.querySelector('input[type=file]')).toBe(null);
  expect(root.querySelectorAll('fieldset label')[1]!.textContent).toContain(done);
  await finish();
  expect(send.mock.calls).toEqual([
    [expect.objectContaining({ report: 'r1', purpose: 'after', picture: photo, token: TOKEN }), expect.anything(), expect.anything()],
  ]);
  expect(post.mock.calls).toEqual([['/reports/job', { headers, body: { said: 'done', text: '' } }]]);
  expect(root.textContent).toContain(thanks);
});

test('a link that has ended says so, and ends no session', async () => {
  serve(reportService, 'GET', () => refused(401, 'invalid-token'));
  await show();
  expect(root.querySelector('h1')?.textContent).toBe('The link has ended');
  expect(root.querySelector('form')).toBe(null);
});

test.each([
  ['never arrives', () => Promise.resolve(false), 'The city’s server did not answer. Check your connection.'],
  [
    'comes after the end of the link',
    () => Promise.reject(new Failure({ type: '#not-found', title: '', status: 404 })),
    'The link has ended',
  ],
])('a photo that %s lets nobody think that it was sent', async (_, answer, says) => {
  serve(reportService, 'GET', () => ok(job));
  const post = serve(reportService, 'POST', () => ok(job));
  await show();
  send.mockImplementationOnce(answer);
  await finish();
  expect(post).not.toHaveBeenCalled();
  expect(root.textContent).toContain(says);
});
