import type { ComponentChildren } from 'preact';
import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

// A map that is there unless the browser draws none, with its pin at a place of the city.
const browser = vi.hoisted(() => ({ draws: true }));
const plot = { center: () => ({ latitude: -6.5931, longitude: 106.7968 }), addressOf: async () => 'Jalan Salak' };
vi.mock('../../map/map', async () => {
  const { useEffect } = await import('preact/hooks');
  return {
    Map: ({ children, onReady, onFailed }: { children: ComponentChildren; onReady(made: typeof plot): void; onFailed(): void }) => {
      useEffect(() => (browser.draws ? onReady(plot) : onFailed()), []);
      return children;
    },
  };
});

import { setLanguage } from '../../lang/i18n';
import { config } from '../../state/config';
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
  browser.draws = true;
  discardDraft();
  root = document.createElement('div');
  document.body.replaceChildren(root);
  HTMLDialogElement.prototype.showModal = vi.fn();
});
afterEach(async () => {
  await act(() => render(null, root));
  delete config.map.tiles;
  await setLanguage('en');
});

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

test('the pin of a map that nobody touched is not a place, until it is asked for', async () => {
  await show();
  expect([hasPlace(), root.textContent]).toEqual([false, expect.stringContaining('Move the map until the pin is at the place.')]);
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

test.each([
  [
    'en',
    'Use your location, or say below where it is.',
    'Use my location',
    '✓ A place is chosen',
    'Describe below where it is.',
    /map|pin/i,
  ],
  [
    'id',
    'Gunakan lokasi Anda, atau jelaskan lokasinya',
    'Gunakan lokasi saya',
    '✓ Lokasi sudah dipilih',
    'Jelaskan lokasinya di bawah.',
    /peta|pin\b/i,
  ],
])(
  'without a map the device still says where it is, in %s, and nothing speaks of one',
  async (tag, hint, button, chosen, words, ofMaps) => {
    await setLanguage(tag);
    browser.draws = false;
    config.map.tiles = '/map/tiles.pmtiles'; // the search of streets would need the map that shows them
    let answer: (() => void) | undefined;
    vi.stubGlobal('navigator', {
      ...navigator,
      geolocation: {
        getCurrentPosition: (found: PositionCallback, refused: PositionErrorCallback) => {
          if (!answer) return (answer = () => found({ coords: { latitude: -6.5931, longitude: 106.7968 } } as GeolocationPosition));
          refused({} as GeolocationPositionError);
        },
      },
    });
    await show();
    expect([root.textContent, root.querySelector('[type=search]')]).toEqual([expect.stringContaining(hint), null]);
    await press(button);
    await act(async () => {
      answer?.();
      await settled();
    });
    expect(root.textContent).toContain(chosen);
    expect(draft.value.position).toEqual({ latitude: -6.5931, longitude: 106.7968 });
    await press(button);
    expect(root.textContent).toContain(words);
    expect(root.textContent).not.toMatch(ofMaps);
  },
);
