import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { reportService, type Department, type Task } from '../../api/client';
import { departments } from '../../state/desk';
import { ok, refused, report, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { ForwardDialog } from './forward';

let root: HTMLElement;

beforeEach(() => {
  HTMLDialogElement.prototype.showModal = vi.fn(); // jsdom has none
  root = document.createElement('div');
  document.body.append(root);
});

test.each([
  ['of their own', ok({ report: report({ id: 'now' }) }), expect.objectContaining({ id: 'now' }) as unknown],
  ['of others', refused(403, 'other-department'), undefined],
])('a report goes to another department, %s, with a reason', async (_, answer, now) => {
  departments.value = [1, 2].map((id): Department => ({ id, code: `d${id}`, name: `Department ${id}`, category_ids: [], routes: [] }));
  serve(reportService, 'GET', (path) => (path === '/reports/firms' ? ok({ firms: [] }) : answer));
  const post = serve(reportService, 'POST', () => ok(undefined));
  const onForwarded = vi.fn();
  const task = { ...report(), department_id: 1 } as unknown as Task;
  await act(() => render(<ForwardDialog task={task} onForwarded={onForwarded} onClose={vi.fn()} />, root));
  const [choice, reason] = [root.querySelector('select')!, root.querySelector('input')!];
  expect([...choice.options].map(({ value }) => value)).toEqual(['', '2']);
  await act(() => {
    choice.value = '2';
    choice.dispatchEvent(new Event('change', { bubbles: true }));
    reason.value = ' It is in the park ';
    reason.dispatchEvent(new Event('input', { bubbles: true }));
  });
  await act(async () => {
    root.querySelector('form')!.requestSubmit();
    await settled();
  });
  const body = { department_id: 2, reason: 'It is in the park' };
  expect(post).toHaveBeenCalledWith('/reports/{id}/forward', { params: { path: { id: 'r1' } }, body });
  expect(onForwarded.mock.calls).toEqual([[now]]);
});

test('a firm of the department gets it with words for it, and the department edits its list', async () => {
  departments.value = [];
  const firms = [{ id: 'f1', name: 'Lampu Jaya', address: 'office@lampu.example' }];
  const get = serve(reportService, 'GET', () => ok({ firms }));
  const post = serve(reportService, 'POST', () => ok(undefined));
  const put = serve(reportService, 'PUT', () => ok({ firms }));
  const task = { ...report(), department_id: 1 } as unknown as Task;
  await act(() => render(<ForwardDialog task={task} onForwarded={vi.fn()} onClose={vi.fn()} />, root));
  await act(settled);
  expect(get.mock.calls[0]).toEqual(['/reports/firms', { params: { query: { department_id: 1 } } }]);
  const [list, choice] = [root.querySelector('textarea')!, root.querySelector('select')!];
  expect(list.value).toBe('Lampu Jaya, office@lampu.example');
  await act(() => {
    list.value = 'Lampu Jaya, new@lampu.example\n\nNyala, halo@nyala.example\n';
    list.dispatchEvent(new Event('input', { bubbles: true }));
  });
  const save = () =>
    act(async () => {
      root.querySelector<HTMLButtonElement>('details button')!.click();
      await settled();
    });
  put.mockImplementationOnce(() => refused(400, 'invalid-input', [{ pointer: '/firms/1/address', detail: 'must be an address' }]));
  await save();
  expect(root.querySelector('details [role=alert]')?.textContent).toContain('Line 2 is not right');
  await save();
  const edited = [
    { id: 'f1', name: 'Lampu Jaya', address: 'new@lampu.example' },
    { name: 'Nyala', address: 'halo@nyala.example' },
  ];
  expect(put).toHaveBeenCalledWith('/reports/firms', { params: { query: { department_id: 1 } }, body: { firms: edited } });
  await act(() => {
    choice.value = 'f1';
    choice.dispatchEvent(new Event('change', { bubbles: true }));
  });
  const words = root.querySelector('textarea')!; // not the line for a reason, which is required
  await act(() => {
    words.value = 'The third lamp';
    words.dispatchEvent(new Event('input', { bubbles: true }));
  });
  expect(words.validity.valid).toBe(true); // it was required before
  await act(async () => {
    root.querySelector('form')!.requestSubmit();
    await settled();
  });
  const body = { firm_id: 'f1', text: 'The third lamp' };
  expect(post).toHaveBeenCalledWith('/reports/{id}/firm', { params: { path: { id: 'r1' } }, body });
});
