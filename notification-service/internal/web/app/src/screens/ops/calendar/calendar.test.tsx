import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { reportService, type Calendar } from '../../../api/client';
import { setLanguage } from '../../../lang/i18n';
import { categories } from '../../../state/categories';
import { category, ok, refused, serve } from '../../../testing/api';
import { settled } from '../../../testing/browser';
import { CityCalendar, edited } from './calendar';

const set: Calendar = {
  zone: 'Asia/Jakarta',
  shifts: [
    { day: 'sunday', from: '20:00', to: '24:00' },
    { day: 'monday', from: '07:30', to: '16:00' },
  ],
  holidays: ['2026-12-25'],
  targets: [{ category_id: 2, hours: 24 }],
};

let root: HTMLElement;
const show = async () => {
  await act(() => render(<CityCalendar />, root));
  await act(settled); // what it reads once it is there
};

const click = (name: string) =>
  act(async () => {
    [...root.querySelectorAll('button')].find((button) => (button.getAttribute('aria-label') ?? button.textContent) === name)!.click();
    await settled();
  });

/** Types into the field that is labelled so, the last of them. */
const type = (label: string, value: string) =>
  act(() => {
    const field = [...root.querySelectorAll('label')].filter(({ textContent }) => textContent.startsWith(label)).at(-1)!;
    const input = field.querySelector('input')!;
    input.value = value;
    input.dispatchEvent(new Event('input', { bubbles: true }));
  });

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  edited.show(set);
  categories.value = [category({ id: 1, name: 'Roads and potholes' }), category({ id: 2, name: 'Street lights and signals' })];
});

afterEach(() => setLanguage('en'));

test('shows when the city works, and what it gives itself', async () => {
  serve(reportService, 'GET', () => ok(set));
  await show();
  const days = [...root.querySelectorAll('fieldset')];
  expect(days.map((day) => day.querySelector('legend')!.textContent)).toHaveLength(7);
  expect(days[0]!.textContent).toContain('Monday');
  expect([...days[0]!.querySelectorAll('input')].map(({ value }) => value)).toEqual(['07:30', '16:00']);
  expect(days[1]!.textContent).toContain('Day off');
  // A clock shows the end of a day as its beginning.
  expect([...days[6]!.querySelectorAll('input')].map(({ value }) => value)).toEqual(['20:00', '00:00']);
  expect([...root.querySelectorAll<HTMLInputElement>('input[type=number]')].map(({ value }) => value)).toEqual(['', '24']);
  expect(root.querySelector('time')!.textContent).toContain('December 25, 2026');
});

test('saves all of it together', async () => {
  serve(reportService, 'GET', () => ok(set));
  const put = serve(reportService, 'PUT', () => ok(set));
  await show();
  await click('Add hours to Tuesday');
  await type('Date', '2026-01-01');
  await click('Add the holiday');
  await type('Roads and potholes', '72');
  await type('Street lights and signals', '');
  await click('Remove Sunday 20:00 to 24:00');
  await type('To', '00:00');
  await click('Save calendar');
  expect(put.mock.lastCall?.[0]).toBe('/reports/calendar');
  expect(put.mock.lastCall?.[1]?.body).toEqual({
    zone: 'Asia/Jakarta',
    shifts: [
      { day: 'monday', from: '07:30', to: '16:00' },
      { day: 'tuesday', from: '08:00', to: '24:00' },
    ],
    holidays: ['2026-01-01', '2026-12-25'],
    targets: [{ category_id: 1, hours: 72 }],
  });
});

test('does not save hours that overlap, end before they begin, or never come', async () => {
  serve(reportService, 'GET', () => ok({ ...set, shifts: [{ day: 'monday', from: '08:00', to: '16:00' }] }));
  const put = serve(reportService, 'PUT', () => ok(set));
  await show();
  await click('Add hours to Monday');
  await type('From', '15:00');
  await type('To', '18:00');
  expect(root.textContent).toContain('overlap');
  await click('Save calendar');
  await type('To', '14:00');
  expect(root.textContent).toContain('end after they begin');
  await click('Save calendar');
  await click('Remove Monday 15:00 to 14:00');
  await click('Remove Monday 08:00 to 16:00');
  await click('Save calendar');
  expect(root.textContent).toContain('at least one day');
  expect(put).not.toHaveBeenCalled();
});

test('says in the reader’s language that there is no such zone', async () => {
  await setLanguage('id');
  serve(reportService, 'GET', () => ok(set));
  serve(reportService, 'PUT', () => refused(400, 'invalid-input', [{ pointer: '/zone', detail: 'unknown time zone' }]));
  await show();
  await type('Zona waktu', 'Asia/Nowhere');
  await click('Simpan kalender');
  expect(root.querySelector('[role=alert]')!.textContent).toContain('zona waktu');
  expect(root.querySelector('legend')!.textContent).toBe('Senin');
});

test('one day’s hours become those of all working days, and a signpost has no target', async () => {
  categories.value = [category({ id: 1, name: 'Roads' }), category({ id: 3, name: 'Water works', accepts_reports: false })];
  serve(reportService, 'GET', () => ok(set));
  const put = serve(reportService, 'PUT', () => ok(set));
  await show();
  expect([...root.querySelectorAll('input[type=number]')]).toHaveLength(1);
  await click('Same on all working days: the hours of Monday');
  await click('Save calendar');
  expect((put.mock.lastCall?.[1]?.body as Calendar).shifts).toEqual([
    { day: 'monday', from: '07:30', to: '16:00' },
    { day: 'sunday', from: '07:30', to: '16:00' },
  ]);
});
