import { render, type ComponentType } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test } from 'vitest';

import { reportService } from '../../api/client';
import { categories } from '../../state/categories';
import { category, ok, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { TemplatesScreen } from '../queue/templates';
import { CityCalendar } from './calendar/calendar';
import { Departments } from './departments';

let root: HTMLElement;
const show = async (Screen: ComponentType | null) => {
  await act(() => render(Screen && <Screen />, root));
  await act(settled);
};
const field = () => root.querySelector<HTMLInputElement>('input[maxlength]')!;
const type = (value: string) =>
  act(() => {
    field().value = value;
    field().dispatchEvent(new Event('input', { bubbles: true }));
  });
const discard = () => [...root.querySelectorAll('button')].find(({ textContent }) => textContent === 'Discard changes');

/** The answers of the services, with a word in the field that the tests change. */
const saved = (word: string) =>
  ok({
    ...{ departments: [{ id: 1, name: word, category_ids: [], routes: [] }], templates: [{ id: 1, title: word, text: 'Text' }] },
    ...{ zone: word, shifts: [], holidays: [], targets: [] },
  });

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  categories.value = [category({ id: 1, name: 'Roads' })];
});

test('no two departments have the same code', async () => {
  const both = [1, 2].map((id) => ({ id, code: 'lamps', name: `Lamps ${id}`, category_ids: [], routes: [] }));
  serve(reportService, 'GET', () => ok({ departments: both }));
  const put = serve(reportService, 'PUT', () => ok({ departments: both }));
  await show(Departments);
  const code = () => root.querySelectorAll<HTMLInputElement>('input[maxlength="40"]')[1]!;
  const save = () => act(() => root.querySelector('form')!.requestSubmit());
  await save();
  expect([put.mock.calls.length, root.querySelectorAll('[role=alert]').length]).toEqual([0, 2]);
  await act(() => {
    code().value = 'lamps-2';
    code().dispatchEvent(new Event('input', { bubbles: true }));
  });
  await save();
  expect(put.mock.lastCall?.[1].body).toMatchObject({ departments: [{ code: 'lamps' }, { code: 'lamps-2' }] });
  await act(settled);
});

test.each([
  ['departments', Departments],
  ['calendar', CityCalendar],
  ['templates', TemplatesScreen],
])('%s that are not saved are there after another screen was looked at', async (_, Screen) => {
  serve(reportService, 'GET', () => saved('Lamps'));
  await show(Screen);
  expect(discard()).toBeUndefined();
  await type('Lamps and signals');
  await show(null);
  await show(Screen);
  expect(field().value).toBe('Lamps and signals');
  const leaving = new Event('beforeunload', { cancelable: true });
  window.dispatchEvent(leaving);
  expect([leaving.defaultPrevented, root.textContent.includes('Somebody else')]).toEqual([true, false]);

  serve(reportService, 'GET', () => saved('Of another'));
  await show(null);
  await show(Screen);
  expect([field().value, root.textContent.includes('Somebody else')]).toEqual(['Lamps and signals', true]);
  await act(async () => {
    discard()!.click();
    await settled();
  });
  expect([field().value, discard()]).toEqual(['Of another', undefined]);
});
