import { createRef, render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { reportService, type Task, type View } from '../../api/client';
import { ok, report, serve } from '../../testing/api';
import '../../testing/unmount';
import * as router from '../../ui/router';
import { columnsWithout, Table } from './table';
import { viewOf, ViewsDialog } from './views';

let root: HTMLElement;
let kept: View[];
const onClose = vi.fn();

beforeEach(() => {
  HTMLDialogElement.prototype.showModal = vi.fn(); // jsdom has none
  root = document.body.appendChild(document.createElement('div'));
  kept = [{ name: 'Roads', filters: 'category=1' }];
  serve(reportService, 'GET', () => ok({ views: kept }));
  serve(reportService, 'PUT', (_, { body }) => {
    kept = (body as { views: View[] }).views;
    return ok({ views: kept });
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  onClose.mockReset();
});

const show = async (filters = '') => {
  await act(() => render(<ViewsDialog filters={filters} onClose={onClose} />, root));
  await act(() => Promise.resolve());
};
const button = (name: string) =>
  [...root.querySelectorAll('button')].find((each) => (each.getAttribute('aria-label') ?? each.textContent) === name)!;
const write = (text: string) =>
  act(() => {
    const input = root.querySelector('input')!;
    input.value = text;
    input.dispatchEvent(new Event('input', { bubbles: true }));
  });
const send = () =>
  act(async () => {
    root.querySelector('form')!.dispatchEvent(new Event('submit', { cancelable: true }));
    await new Promise((done) => setTimeout(done)); // read, then written
  });

test('a view is the filters and the order of an address, and nothing else of it', () => {
  const query = new URLSearchParams('report=r1&map=1&order=due&status=all&category=1,2&q=');
  expect(viewOf(query)).toBe('category=1%2C2&status=all&order=due');
});

test('names the present filters, beside those that another device has saved since', async () => {
  await show('assignee=me');
  kept = [...kept, { name: 'From the telephone', filters: '' }];
  await write(' Mine, due ');
  await send();
  expect(kept.map(({ name }) => name)).toEqual(['Roads', 'From the telephone', 'Mine, due']);
  expect(kept[2]).toEqual({ name: 'Mine, due', filters: 'assignee=me' });
  expect(button('Mine, due').getAttribute('aria-current')).toBe('true');
});

test('no two views have one name', async () => {
  await show();
  await write('Roads');
  expect(button('Save view').disabled).toBe(true);
  expect(root.textContent).toContain('Another view has this name.');
});

test('renames and deletes', async () => {
  await show();
  await act(() => button('Rename: Roads').click());
  await write('Streets');
  await send();
  expect(kept).toEqual([{ name: 'Streets', filters: 'category=1' }]);
  await act(async () => {
    button('Delete: Streets').click();
    await new Promise((done) => setTimeout(done));
  });
  expect(kept).toEqual([]);
});

test('shows a view without what was asked for before, and closes', async () => {
  const setQuery = vi.spyOn(router, 'setQuery').mockReturnValue();
  await show('q=lamp');
  await act(() => button('Roads').click());
  expect(setQuery.mock.lastCall?.[0]).toMatchObject({ category: '1', q: '', status: '', assignee: '', report: '' });
  await act(() => button('Mine').click());
  expect(setQuery.mock.lastCall?.[0]).toMatchObject({ category: '', status: 'all', assignee: 'me' });
  await act(() => button('New since yesterday').click());
  expect(setQuery.mock.lastCall?.[0].from).toMatch(/^\d{4}-\d\d-\d\d$/);
  expect(onClose).toHaveBeenCalledTimes(3);
});

test('columns are left out of the list by the address, and kept with a view', async () => {
  const asked = vi.spyOn(router, 'setQuery').mockImplementation(() => {});
  const filters = viewOf(new URLSearchParams('status=all&without=score.nothing'));
  expect(columnsWithout(new URLSearchParams(filters))).toEqual(['score']);
  await show(filters);
  const boxes = [...root.querySelectorAll<HTMLInputElement>('.columns input')];
  expect(boxes.map(({ checked }) => checked)).toEqual([true, true, true, true, false]);
  await act(() => boxes[1]!.click());
  expect(asked).toHaveBeenLastCalledWith({ without: 'category.score' });
  await act(() => button('Mine').click());
  expect(asked).toHaveBeenLastCalledWith(expect.objectContaining({ assignee: 'me', without: 'score.nothing' }));
});

test('a column that is left out has neither heading nor cells', async () => {
  const nothing = () => {};
  const task = { ...report(), photos: [], new_comments: 0, overdue_level: 0 } as unknown as Task;
  const props = { tasks: [task], total: 1, order: 'oldest' as const, current: undefined, selected: new Set<string>(), oneStatus: false };
  const acts = {
    address: () => '/',
    onCurrent: nothing,
    onSelect: nothing,
    onToggle: nothing,
    onOpen: nothing,
    onPick: nothing,
  };
  await act(() => render(<Table {...props} {...acts} without={['status', 'with']} table={createRef()} />, root));
  expect(root.querySelectorAll('.task-status, .task-with')).toHaveLength(0);
  expect([root.querySelectorAll('[role=columnheader]').length, root.querySelectorAll('[role=gridcell]').length]).toEqual([5, 5]);
  const grid = root.querySelector<HTMLElement>('[role=grid]')!;
  expect([grid.getAttribute('aria-colcount'), grid.dataset.without]).toEqual(['5', 'status with']);
});
