import { beforeEach, expect, test } from 'vitest';

import { notificationService } from '../api/client';
import { config } from '../state/config';
import { ok, refused, serve } from '../testing/api';
import { addressAt, findAddresses, joined } from './geocoder';

const salak = { name: 'Jalan Salak 12', context: 'Babakan', latitude: -6.59, longitude: 106.8 };

beforeEach(() => {
  config.map = { geocoder: true };
});

test('words and positions are asked of our own service', async () => {
  const get = serve(notificationService, 'GET', () => ok({ places: [salak] }));
  expect(await findAddresses(' salak ')).toEqual([
    { name: 'Jalan Salak 12', quarter: 'Babakan', position: { latitude: -6.59, longitude: 106.8 } },
  ]);
  expect(await addressAt({ latitude: -6.59, longitude: 106.8 })).toBe('Jalan Salak 12, Babakan');
  expect(get.mock.calls.map(([path, options]) => [path, options.params?.['query']])).toEqual([
    ['/map/places', { q: 'salak', language: 'en' }],
    ['/map/places/at', { latitude: -6.59, longitude: 106.8, language: 'en' }],
  ]);
});

test('a geocoder that fails finds nothing, and stops nobody', async () => {
  serve(notificationService, 'GET', () => refused(503, 'unavailable'));
  expect([await findAddresses('salak'), await addressAt({ latitude: 0, longitude: 0 })]).toEqual([[], '']);
  serve(notificationService, 'GET', () => Promise.reject(new TypeError('no network')));
  expect(await findAddresses('salak')).toEqual([]);
});

test('without a geocoder, and for a letter or two, nobody is asked', async () => {
  const get = serve(notificationService, 'GET', () => ok({ places: [salak] }));
  expect(await findAddresses('sa')).toEqual([]);
  config.map = {};
  expect([await findAddresses('salak'), await addressAt({ latitude: 0, longitude: 0 })]).toEqual([[], '']);
  expect(get).not.toHaveBeenCalled();
});

test('what the map has found already is not shown twice', () => {
  const at = (name: string, longitude: number) => ({ name, quarter: '', position: { latitude: -6.59, longitude } });
  const found = joined([at('Jalan Salak', 106.8)], [at('Jalan Salak', 106.801), at('Jalan Salak', 106.9), at('Jalan Salak 12', 106.8)]);
  expect(found.map(({ name, position }) => [name, position.longitude])).toEqual([
    ['Jalan Salak', 106.8],
    ['Jalan Salak', 106.9],
    ['Jalan Salak 12', 106.8],
  ]);
});
