import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import type { CategorySettings, NewCategory } from '../../../api/client';
import { setLanguage } from '../../../lang/i18n';
import { refused, serve } from '../../../testing/api';
import { settled } from '../../../testing/browser';
import { merge, rowsOf, withField, type Row } from './draft';

type Setting = CategorySettings['categories'][number];
const setting = (id: number, en: string, idn: string, part: Partial<Setting> = {}): Setting => ({
  id,
  texts: [
    { language: 'en', name: en }, // the service leaves out what is empty
    { language: 'id', name: idn, hint: '', group: '' },
  ],
  icon: 'dots',
  accepts_reports: true,
  signposts: [],
  retired: false,
  ...part,
});
const stored = (): CategorySettings => ({
  languages: ['en', 'id'],
  categories: [
    setting(1, 'Roads', 'Jalan'),
    setting(2, 'Lamps', 'Lampu'),
    setting(3, 'Waste', 'Sampah'),
    setting(4, 'Old', 'Lama', { retired: true }),
  ],
});

/** A gateway that compresses makes the tag a weak one. */
const list = (settings: CategorySettings, tag: string) => ({
  data: settings,
  response: new Response(null, { status: 200, headers: { ETag: `W/${tag}` } }),
});

let root: HTMLElement;
let now: CategorySettings;
let tag: string;
/** The lists that were sent, each with the tag that it was for. */
let sent: { tag: unknown; categories: NewCategory[] }[];

const show = async () => {
  vi.resetModules(); // the editor keeps what was edited
  const { Categories } = await import('./categories');
  const { reportService } = await import('../../../api/client');
  await import('../../../lang/console');
  serve(reportService, 'GET', (path) => {
    if (path === '/reports/categories') return list(now, tag);
    return { data: path === '/categories' ? { categories: [] } : { changes: [] }, response: new Response(null, { status: 200 }) };
  });
  serve(reportService, 'PUT', (_, { params, body }) => {
    const { categories } = body as { categories: NewCategory[] };
    if (params?.header?.['If-Match'] !== tag) return refused(412, 'stale-version');
    sent.push({ tag, categories });
    return list(now, tag);
  });
  await act(() => render(<Categories />, root));
  await act(settled);
};
const button = (name: string) =>
  [...root.querySelectorAll('button')].find((each) => (each.getAttribute('aria-label') ?? each.textContent) === name)!;
const click = (name: string) =>
  act(async () => {
    button(name).click();
    await settled();
  });
const field = (name: string) =>
  [...root.querySelectorAll('label.field')].find((label) => label.querySelector('span')!.textContent === name)!;
const type = (name: string, text: string) =>
  act(() => {
    const input = field(name).querySelector('input')!;
    input.value = text;
    input.dispatchEvent(new Event('input', { bubbles: true }));
  });
const save = () => click('Save categories');
const names = () => [...root.querySelectorAll('.ordered strong')].map(({ textContent }) => textContent);
const englishNames = () => sent.at(-1)!.categories.map(({ texts }) => texts[0]!.name);

beforeEach(async () => {
  await setLanguage('en');
  root = document.createElement('div');
  document.body.replaceChildren(root);
  now = stored();
  tag = '"1"';
  sent = [];
});

test('a category is added, renamed, ordered, retired and brought back, and all is saved together', async () => {
  await show();
  await click('Edit: Lamps');
  await type('Name (English)', 'Street lamps');
  await click('Move up: Street lamps');
  expect(names()).toEqual(['Street lamps', 'Roads', 'Waste']);
  expect(document.activeElement).toBe(button('Move up: Street lamps'));
  expect(root.querySelector('.ordered + [role=status]')!.textContent).toBe('Street lamps is at place 1 of 3.');
  await click('Edit: Waste');
  await click('Retire');
  await click('Bring back: Old');
  await click('Add a category');
  await type('Name (English)', ' Stalls ');
  await type('Name (Indonesian)', 'Pedagang');
  await save();
  expect(englishNames()).toEqual(['Street lamps', 'Roads', 'Old', 'Stalls']);
  expect(sent[0]!.categories.map(({ id }) => id)).toEqual([2, 1, 4, undefined]);
});

test('what is missing is said at its field, which is opened and gets the focus', async () => {
  await show();
  await click('Add a category');
  await type('Name (English)', 'roads');
  await click('Edit: roads');
  await save();
  expect(sent).toEqual([]);
  expect(field('Name (English)').textContent).toContain('Another category has this name.');
  expect(field('Name (Indonesian)').textContent).toContain('Please fill this in.');
  expect(document.activeElement).toBe(field('Name (English)').querySelector('input'));
  await type('Name (English)', 'Stalls');
  expect(field('Name (English)').querySelector('.fault')).toBeNull();
});

test('what the service finds wrong is said at its field', async () => {
  await show();
  const { reportService } = await import('../../../api/client');
  serve(reportService, 'PUT', () => refused(400, 'invalid-input', [{ pointer: '/categories/1/texts/1/hint', detail: 'must be shorter' }]));
  await click('Edit: Lamps');
  await type('Hint (Indonesian)', 'Lampu yang mati');
  await save();
  expect(field('Hint (Indonesian)').textContent).toContain('must be shorter');
});

test('who was overtaken takes over what the other did, and loses nothing', async () => {
  await show();
  await click('Edit: Lamps');
  await type('Name (English)', 'Street lamps');
  await click('Edit: Roads');
  await type('Name (English)', 'My roads');
  now = { ...now, categories: [setting(5, 'Noise', 'Bising'), setting(1, 'Their roads', 'Jalan raya'), ...now.categories.slice(1)] };
  tag = '"2"';
  await save();
  expect([sent.length, names()]).toEqual([0, ['My roads', 'Street lamps', 'Waste']]);
  await click('Take over their changes, keep mine');
  expect(names()).toEqual(['Noise', 'My roads', 'Street lamps', 'Waste']);
  expect(root.querySelector('.note')!.textContent).toContain('My roads, Name (English): Their roads');
  await click('Use theirs');
  await save();
  expect(englishNames()).toEqual(['Noise', 'Their roads', 'Street lamps', 'Waste']);
  expect(sent[0]!.categories[1]!.texts[1]!.name).toBe('Jalan raya');
});

test('the preview shows what residents will see, in each language', async () => {
  await show();
  const preview = root.querySelector<HTMLElement>('[aria-labelledby=preview]')!;
  const shown = () => [...preview.querySelectorAll('.option')].map(({ textContent }) => textContent);
  expect(shown()).toEqual(['Roads', 'Lamps', 'Waste']);
  await act(() => preview.querySelectorAll<HTMLInputElement>('[name=preview]')[1]!.click());
  expect(shown()).toEqual(['Jalan', 'Lampu', 'Sampah']);
});

test('a row is dragged to the place that it is over', async () => {
  await show();
  const rows = [...root.querySelectorAll<HTMLElement>('.ordered > li')];
  rows.forEach((row, i) => vi.spyOn(row, 'getBoundingClientRect').mockReturnValue({ top: i * 50 } as DOMRect));
  const pointer = (type: string, y: number) => Object.assign(new MouseEvent(type, { bubbles: true, clientY: y }), { pointerId: 1 });
  await act(() => void rows[0]!.querySelector('.grip')!.dispatchEvent(pointer('pointerdown', 10)));
  await act(() => void window.dispatchEvent(pointer('pointermove', 75)));
  expect(names()).toEqual(['Lamps', 'Roads', 'Waste']);
  await act(() => void window.dispatchEvent(pointer('pointerup', 75)));
  await act(() => void window.dispatchEvent(pointer('pointermove', 500)));
  expect(names()).toEqual(['Lamps', 'Roads', 'Waste']);
});

const keys = (rows: Row[]) => rows.map(({ key }) => key);

test('orders are joined: mine if I changed it, and what either of us added stays where it was put', () => {
  const base = rowsOf(stored());
  const [roads, lamps, waste, old] = base as [Row, Row, Row, Row];
  const fresh: Row = { ...roads, key: 'new1' };
  const theirs: Row = { ...roads, key: 'c9' };
  expect(keys(merge(base, [roads, fresh, lamps, waste, old], [waste, roads, lamps, theirs, old]).rows)).toEqual([
    'c3',
    'c1',
    'new1',
    'c2',
    'c9',
    'c4',
  ]);
  expect(keys(merge(base, [fresh, lamps, roads, waste, old], [waste, roads, lamps, theirs, old]).rows)).toEqual([
    'new1',
    'c2',
    'c1',
    'c3',
    'c9',
    'c4',
  ]);
});

test('a category that one retires and the other renames is both', () => {
  const base = rowsOf(stored());
  const mine = base.map((row) => (row.key === 'c2' ? withField(row, 'en.name', 'Street lamps') : row));
  const theirs = base.map((row) => (row.key === 'c2' ? { ...row, retired: true } : row));
  const { rows, clashes } = merge(base, mine, theirs);
  expect(clashes).toEqual([]);
  expect(rows.find(({ key }) => key === 'c2')).toMatchObject({ retired: true, texts: { en: { name: 'Street lamps' } } });
});
