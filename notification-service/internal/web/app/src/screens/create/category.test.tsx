import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { categories } from '../../state/categories';
import { discardDraft, draft, updateDraft } from '../../state/draft';
import { category } from '../../testing/api';
import { PickCategory, signpost } from './category';

let root: HTMLElement;
const picked = vi.fn();
const show = () => act(() => render(<PickCategory onPick={picked} />, root));
const names = () => [...root.querySelectorAll('.option')].map(({ textContent }) => textContent);

beforeEach(() => {
  discardDraft();
  root = document.createElement('div');
  document.body.replaceChildren(root);
});

test('a category is found by its name, hint and group, and the chosen one stays in sight', async () => {
  const all = [
    'Jalan',
    'Lampu',
    'Grafiti',
    'Pohon',
    'Trotoar',
    'Hewan',
    'Air',
    'Sampah',
    'Parkir',
    'Bising',
    'Banjir',
    'Sungai',
    'Lainnya',
  ];
  categories.value = all.map((name, id) => category({ id: id + 1, name, hint: name === 'Air' ? 'Bocor' : '' }));
  await show();
  const found = async (words: string) => {
    const field = root.querySelector<HTMLInputElement>('[type=search]')!;
    field.value = words;
    await act(() => void field.dispatchEvent(new Event('input', { bubbles: true })));
    return names();
  };
  expect(await found('')).toHaveLength(13);
  expect(await found('grafiti')).toEqual(['Grafiti']);
  expect(await found('bocor')).toEqual(['AirBocor']);
  await act(() => updateDraft({ category_id: 6 }));
  expect(await found('grafiti')).toEqual(['Grafiti', 'Hewan']);
  expect(await found('nothing of that name')).toEqual(['Hewan']);
});

test('categories stand under their groups, in the order of the city, without those that it no longer uses', async () => {
  categories.value = [
    category({ id: 1, name: 'Lamps', group: 'Streets' }),
    category({ id: 2, name: 'Noise' }),
    category({ id: 3, name: 'Holes', group: 'Streets' }),
    category({ id: 4, name: 'Old', retired: true }),
  ];
  await show();
  expect([...root.querySelectorAll('[role=group]')].map((group) => group.getAttribute('aria-label'))).toEqual(['Streets']);
  expect(names()).toEqual(['Lamps', 'Holes', 'Noise']);
});

test('a press on a category opens the next step, and the arrow keys only choose', async () => {
  categories.value = [category({ id: 1, name: 'Lamps' }), category({ id: 2, name: 'Gas', accepts_reports: false })];
  await show();
  const [lamps, gas] = root.querySelectorAll<HTMLElement>('.option');
  const press = (label: Element, detail: number) =>
    act(() => void label.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, detail })));
  await press(lamps!.querySelector('input')!, 0);
  expect([draft.value.category_id, picked.mock.calls.length]).toEqual([1, 0]);
  await press(gas!, 1);
  expect([draft.value.category_id, picked.mock.calls.length]).toEqual([2, 0]); // it says where to turn
  await press(lamps!, 1);
  expect([draft.value.category_id, picked.mock.calls.length]).toEqual([1, 1]);
});

test('a signpost says where to turn, with a number that can be called', async () => {
  categories.value = [
    category({ id: 1, name: 'Gas', hint: 'Call 112 or (0251) 8321075, 07:30-16:00.', accepts_reports: false }),
    category(),
  ];
  await show();
  expect(signpost()).toBeUndefined();
  await act(() => root.querySelector<HTMLInputElement>('input')!.click());
  expect([draft.value.category_id, signpost()?.name]).toEqual([1, 'Gas']);
  const numbers = [...root.querySelectorAll('.note a')].map((link) => link.getAttribute('href'));
  expect(numbers).toEqual(['tel:112', 'tel:02518321075']);
});
