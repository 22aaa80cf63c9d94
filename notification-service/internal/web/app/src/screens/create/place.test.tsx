import type { ComponentChildren } from 'preact';
import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

// A map that is there, with its pin at a place of the city.
const plot = { center: () => ({ latitude: -6.5931, longitude: 106.7968 }), addressOf: async () => 'Jalan Salak' };
vi.mock('../../map/map', async () => {
  const { useEffect } = await import('preact/hooks');
  return {
    Map: ({ children, onReady }: { children: ComponentChildren; onReady(made: typeof plot): void }) => {
      useEffect(() => onReady(plot), []);
      return children;
    },
  };
});

import { discardDraft, draft, updateDraft } from '../../state/draft';
import { settled } from '../../testing/browser';
import { hasPlace, Place } from './place';

let root: HTMLElement;
const show = async (asking = false, onAnswer = vi.fn()) => {
  await act(() => render(<Place asking={asking} onAnswer={onAnswer} />, root));
  return onAnswer;
};
const press = (name: string) =>
  act(async () => {
    [...root.querySelectorAll('button')].find((each) => each.textContent.includes(name))!.click();
    await settled();
  });

beforeEach(() => {
  discardDraft();
  root = document.createElement('div');
  document.body.replaceChildren(root);
  HTMLDialogElement.prototype.showModal = vi.fn();
});
afterEach(() => act(() => render(null, root)));

test('a device without a position gets a message, and no place is chosen', async () => {
  vi.stubGlobal('navigator', {
    ...navigator,
    geolocation: { getCurrentPosition: (_: PositionCallback, refused: PositionErrorCallback) => refused({} as GeolocationPositionError) },
  });
  await show();
  await press('Use my location');
  expect(root.textContent).toContain('We could not get your location. Choose the place on the map.');
  expect(draft.value.position).toBeUndefined();
});

test('the pin of a map that nobody touched is no place, until it is asked for', async () => {
  await show();
  expect([hasPlace(), root.textContent]).toEqual([false, expect.stringContaining('No place chosen yet.')]);
  const answer = await show(true);
  await press('Use the place under the pin');
  expect(draft.value.position).toEqual(plot.center());
  expect(root.textContent).toContain('✓ Jalan Salak');
  expect(answer).toHaveBeenCalledWith(true);
});

test('a report can go on without a place, and words are one', async () => {
  const answer = await show(true);
  await press('Go on without a place');
  expect([answer.mock.lastCall, hasPlace()]).toEqual([[true], false]);
  updateDraft({ address: 'Behind the market' });
  expect(hasPlace()).toBe(true);
});
