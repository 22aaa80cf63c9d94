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
  serve(reportService, 'GET', () => answer);
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
