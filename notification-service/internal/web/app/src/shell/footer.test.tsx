import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { loadConfig, type City } from '../state/config';
import { Brand } from './brand';
import { Footer } from './footer';

let root: HTMLElement;
const show = async (city?: City) => {
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ auth: { mode: 'none' }, map: {}, ...(city && { city }) })));
  await loadConfig();
  await act(() =>
    render(
      <>
        <Brand />
        <Footer />
      </>,
      root,
    ),
  );
};
beforeEach(() => (root = document.createElement('div')));
afterEach(() => show());

test.each([undefined, { languages: ['en'] }, { languages: ['en'], links: {} }])(
  'a city that has set nothing has no footer',
  async (city) => {
    await show(city);
    expect([root.textContent.trim(), root.querySelector('footer'), root.querySelector('img')!.getAttribute('src')]).toEqual([
      'CityConnect',
      null,
      '/icon.svg',
    ]);
  },
);

test('a city has its own name, picture and links, and a number to call', async () => {
  await show({
    name: 'Kota Bogor',
    languages: ['id'],
    logo: '/city/logo',
    links: { privacy: 'https://bogor.example/privasi', contact: 'https://bogor.example/kontak', emergency: '112' },
  });
  expect(root.textContent).toContain('Kota Bogor');
  expect(root.querySelector('img')!.getAttribute('src')).toBe('/city/logo');
  expect([...root.querySelectorAll('footer a')].map((a) => a.getAttribute('href'))).toEqual([
    'https://bogor.example/kontak',
    'https://bogor.example/privasi',
    '/docs/',
    'tel:112',
  ]);
});
