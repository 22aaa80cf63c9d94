import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

const found = vi.hoisted(() => ({ position: undefined as { latitude: number; longitude: number } | undefined }));
vi.mock('../../photos/exif', () => ({ positionOf: async () => found.position, withoutPosition: async (file: Blob) => file }));

import { config } from '../../state/config';
import { discardDraft, draft, updateDraft } from '../../state/draft';
import { Camera } from './camera';

let root: HTMLElement;
const placed = vi.fn();
const choose = async () => {
  const input = root.querySelector('input')!;
  Object.defineProperty(input, 'files', { value: [new File(['x'], 'IMG_1.jpg', { type: 'image/jpeg' })] });
  await act(() => void input.dispatchEvent(new Event('change', { bubbles: true })));
  await vi.waitFor(() => expect(root.querySelector('img')).not.toBeNull());
};

beforeEach(async () => {
  URL.createObjectURL = () => 'blob:preview';
  URL.revokeObjectURL = () => {};
  discardDraft();
  config.map.bounds = [106.7, -6.7, 106.9, -6.5];
  root = document.createElement('div');
  document.body.replaceChildren(root);
  await act(() => render(<Camera onPlace={placed} />, root));
});
afterEach(() => act(() => render(null, root)));

test('the place of a photo is offered, and taken only when it is asked for', async () => {
  found.position = { latitude: -6.59, longitude: 106.8 };
  await choose();
  await vi.waitFor(() => expect(root.textContent).toContain('Only this device reads that'));
  expect(draft.value.position).toBeUndefined();
  await act(() => root.querySelector('button')!.click());
  expect(placed).toHaveBeenCalledWith(found.position);
  await act(() => updateDraft({ position: found.position! }));
  expect([root.textContent.trim(), root.querySelector('button')]).toEqual(['The photo is added.', null]);
});

test.each([
  [undefined, 'does not say where it was taken'],
  [{ latitude: 52.5, longitude: 13.4 }, 'was taken outside of the city'],
])('a photo without a place of the city says so: %j', async (position, words) => {
  found.position = position;
  await choose();
  await vi.waitFor(() => expect(root.textContent).toContain(words));
  expect(root.querySelector('button')).toBeNull();
});
