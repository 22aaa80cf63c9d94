import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test, vi } from 'vitest';

vi.mock('../../map/map', () => ({ Map: () => null }));

import { discardDraft, draft } from '../../state/draft';
import { Place } from './place';

test('a device that does not give its position is told about, and the map is left', async () => {
  discardDraft();
  vi.stubGlobal('navigator', {
    ...navigator,
    geolocation: { getCurrentPosition: (_: PositionCallback, refused: PositionErrorCallback) => refused({} as GeolocationPositionError) },
  });
  const root = document.createElement('div');
  await act(() => render(<Place />, root));
  const button = [...root.querySelectorAll('button')].find((each) => each.textContent.includes('Where I am'));
  await act(() => button?.click());
  expect(root.textContent).toContain('Your device did not give its position. Choose the place on the map.');
  expect(draft.value.position).toBeUndefined();
  await act(() => render(null, root));
});
