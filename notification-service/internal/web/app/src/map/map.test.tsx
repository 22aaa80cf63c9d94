import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test, vi } from 'vitest';

// A browser without WebGL.
vi.mock('./plot', () => ({
  createPlot: () => {
    throw new Error('Failed to initialize WebGL');
  },
}));
vi.mock('virtual:maplibre-shared', () => ({ default: '' }));

import { Map } from './map';

test('where no map can be drawn the reader learns it, and keeps what lies over it', async () => {
  vi.stubGlobal(
    'ResizeObserver',
    class {
      constructor(private readonly seen: (entries: { contentRect: { width: number } }[]) => void) {}
      observe = () => this.seen([{ contentRect: { width: 390 } }]);
      disconnect = () => {};
    },
  );
  const root = document.createElement('div');
  const failed = vi.fn();
  await act(() =>
    render(
      <Map label="Map" onFailed={failed}>
        <button type="button">Use my location</button>
      </Map>,
      root,
    ),
  );
  await vi.waitFor(() => expect(failed).toHaveBeenCalledOnce());
  await vi.waitFor(() => expect(root.textContent).toContain('The map could not be loaded.'));
  expect(root.querySelector('button')?.textContent).toBe('Use my location');
});
