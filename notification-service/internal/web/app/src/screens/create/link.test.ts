import { beforeEach, expect, test } from 'vitest';

import { categories } from '../../state/categories';
import { config } from '../../state/config';
import { discardDraft, draft, updateDraft } from '../../state/draft';
import { reportService } from '../../api/client';
import { category, ok, serve } from '../../testing/api';
import { openLink } from './link';

const query = (text: string) => new URLSearchParams(text);

const lamp = { asset: 'lamps/L-1', name: 'Lamp 1', category_id: 2, latitude: -6.6, longitude: 106.81 };
let here: ReturnType<typeof category>[];
let asked: unknown[];

beforeEach(() => {
  asked = [];
  here = [category(), category({ id: 3, name: 'Gas', accepts_reports: false })];
  serve(reportService, 'GET', (path, { params }) => {
    asked.push(params?.['query']);
    return path === '/map/assets'
      ? ok({ assets: params?.['query']?.['asset'] === lamp.asset ? [lamp] : [], more: false })
      : ok({ categories: here });
  });
  discardDraft();
  config.map.bounds = [106.7, -6.7, 106.9, -6.5];
  categories.value = [category(), category({ id: 3, name: 'Gas', accepts_reports: false }), category({ id: 9, retired: true })];
});

const PLACE = 'The link has no place that can be read. Choose the place on the map.';
const OUTSIDE = 'The place of the link is outside of the city. Choose the place on the map.';
const CATEGORY = 'The category of the link is not one of the city’s. Choose what it is about.';

test.each([
  ['lat=-6.59&lng=106.8&category=2', [], { position: { latitude: -6.59, longitude: 106.8 }, category_id: 2 }],
  ['category=2', [], { category_id: 2 }],
  ['lat=-6.59&lng=106.8', [], { position: { latitude: -6.59, longitude: 106.8 } }],
  ['category=3', [], { category_id: 3 }], // says where to turn
  ['lat=-6.59&category=2', [PLACE], { category_id: 2 }],
  ['lat=&lng=106.8', [PLACE], {}],
  ['lat=-6,59&lng=106.8', [PLACE], {}],
  ['lat=1e1&lng=106.8', [PLACE], {}],
  ['lat=-96.59&lng=106.8', [PLACE], {}],
  ['lat=106.8&lng=-6.59', [PLACE], {}],
  ['lat=52.5&lng=13.4', [OUTSIDE], {}],
  ['lat=-6.59&lng=106.8&category=9', [CATEGORY], { position: { latitude: -6.59, longitude: 106.8 } }],
  ['category=lamps', [CATEGORY], {}],
  ['lat=x&lng=y&category=', [PLACE, CATEGORY], {}],
])('/new?%s', async (text, faults, said) => {
  updateDraft({ title: 'Lamp is dark', description: 'Since Monday' });
  expect((await openLink(query(text))).faults).toEqual(faults);
  const { title, description, position, category_id } = draft.value;
  expect([title, description]).toEqual(['Lamp is dark', 'Since Monday']);
  expect({ ...(position && { position }), ...(category_id && { category_id }) }).toEqual(said);
});

test.each([
  ['lat=-6.59&lng=106.8&category=2', '3'],
  ['lat=-6.59&lng=106.8', '2'],
  ['lat=-6.59&lng=106.8&category=3', '2'],
  ['category=2', ''],
  ['lat=52.5&lng=13.4&category=2', ''],
])('/new?%s opens at the step that is open: %s', async (text, step) => {
  expect((await openLink(query(text))).step).toBe(step);
});

test('a reload keeps what the reader has changed since, and another address is taken', async () => {
  await openLink(query('lat=-6.59&lng=106.8&category=2'));
  updateDraft({ position: { latitude: -6.6, longitude: 106.81 }, address: 'At the bridge' });
  await openLink(query('lat=-6.59&lng=106.8&category=2&step=3'));
  expect(draft.value).toMatchObject({ position: { latitude: -6.6, longitude: 106.81 }, address: 'At the bridge' });
  await openLink(query('lat=-6.58&lng=106.8'));
  expect(draft.value).toMatchObject({ position: { latitude: -6.58, longitude: 106.8 }, address: '', category_id: 2 });
});

const code = (of: string) => `The city does not know the code ${of}, or the thing is no longer there. Say where the problem is instead.`;

test('a code of a thing says its place and category', async () => {
  updateDraft({ title: 'Lamp is dark' });
  expect(await openLink(query('asset=lamps/L-1'))).toEqual({ faults: [], step: '3' });
  expect(draft.value).toMatchObject({
    title: 'Lamp is dark',
    asset: { name: 'lamps/L-1', label: 'Lamp 1' },
    category_id: 2,
    position: { latitude: -6.6, longitude: 106.81 },
  });
  // The address itself counts more.
  await openLink(query('asset=lamps/L-1&category=3&lat=-6.59&lng=106.8'));
  expect(draft.value).toMatchObject({ asset: { name: 'lamps/L-1' }, category_id: 3, position: { latitude: -6.59, longitude: 106.8 } });
});

test.each(['lamps/L-2', 'lamps', ''])('an unknown code explains itself, and costs no word: %j', async (of) => {
  updateDraft({ title: 'Lamp is dark', category_id: 2 });
  const { faults, step } = await openLink(query(`asset=${of}`));
  expect([faults, step, draft.value.title, draft.value.category_id, draft.value.asset]).toEqual([
    [code(of)],
    '',
    'Lamp is dark',
    2,
    undefined,
  ]);
});

test('a signpost that stands at the place is shown before anything is typed', async () => {
  here = [category({ accepts_reports: false, hint: 'The port looks after its lamps.' })];
  expect(await openLink(query('asset=lamps/L-1'))).toEqual({ faults: [], step: '2' });
  expect(asked).toContainEqual({ latitude: -6.6, longitude: 106.81 });
});
