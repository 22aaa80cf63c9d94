import { expect, test, vi } from 'vitest';

import { config, loadConfig } from './config';

test('the configuration is what the server says', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve(new Response('{"auth":{"mode":"dev"}}')));
  await loadConfig();
  expect(config.auth.mode).toBe('dev');
});

test.each([
  ['no answer', () => Promise.reject(new TypeError('network')), 'no-answer'],
  ['a gateway without a service', () => Promise.resolve(new Response('', { status: 502 })), 'unavailable'],
])('%s is a failure, and no configuration without sign-in', async (_, fetch, kind) => {
  vi.stubGlobal('fetch', fetch);
  await expect(loadConfig()).rejects.toMatchObject({ kind });
});
