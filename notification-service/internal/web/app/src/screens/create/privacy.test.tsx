import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test } from 'vitest';

import { discardDraft, draft, updateDraft } from '../../state/draft';
import { Privacy } from './privacy';

test('neither is chosen beforehand, and anonymous reporters read that everybody sees the place', async () => {
  discardDraft();
  const root = document.createElement('div');
  document.body.replaceChildren(root); // what is not in a document cannot be chosen
  await act(() => render(<Privacy />, root));
  const [named, anonymous] = root.querySelectorAll<HTMLInputElement>('[name=privacy]');
  expect([named?.checked, anonymous?.checked, draft.value.privacy_level]).toEqual([false, false, undefined]);
  const warned = () => root.textContent.includes('choose a point nearby');

  await act(() => anonymous?.click());
  expect([draft.value.privacy_level, warned()]).toEqual(['anonymous', false]); // there is no place
  await act(() => updateDraft({ position: { latitude: -6.6, longitude: 106.8 } }));
  expect(warned()).toBe(true);
  await act(() => named?.click());
  expect(warned()).toBe(false);
  await act(() => render(null, root));
});

test('a report for the city alone says so, and warns of nobody', async () => {
  discardDraft();
  const root = document.createElement('div');
  document.body.replaceChildren(root);
  await act(() => render(<Privacy />, root));
  await act(() => updateDraft({ privacy_level: 'anonymous', position: { latitude: -6.6, longitude: 106.8 } }));
  await act(() => root.querySelector<HTMLInputElement>('[type=checkbox]')?.click());
  expect(draft.value.forCity).toBe(true);
  expect(root.textContent).toContain('City staff, and nobody else');
  expect(root.textContent).not.toContain('Everyone');
  await act(() => render(null, root));
});
