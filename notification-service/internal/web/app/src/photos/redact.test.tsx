import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test, vi } from 'vitest';

import type { Photo } from '../api/client';
import { Redact } from './redact';

const photo = { id: 'p1', report_id: 'r1', width: 400, height: 300, alt: '' } as Photo;

/** Draws a part with the mouse, so fast that the page shows nothing in between. */
const draw = (area: HTMLElement, from: [number, number], to: [number, number]) =>
  act(() => {
    const event = (type: string, [clientX, clientY]: [number, number]) =>
      area.dispatchEvent(new MouseEvent(type, { bubbles: true, clientX, clientY }));
    event('pointerdown', from);
    event('pointermove', to);
    event('pointerup', to);
  });

test('a part that is drawn before the page shows its beginning stays, and so does the one before', async () => {
  HTMLDialogElement.prototype.showModal = vi.fn(); // jsdom has none
  const root = document.createElement('div');
  document.body.append(root);
  await act(() => render(<Redact photo={photo} onClose={vi.fn()} onDone={vi.fn()} />, root));
  const area = root.querySelector<HTMLElement>('.redact')!;
  area.setPointerCapture = vi.fn();
  area.getBoundingClientRect = () => new DOMRect(0, 0, 400, 300);
  await draw(area, [0, 0], [200, 150]);
  await draw(area, [240, 180], [320, 240]);
  await draw(area, [10, 10], [10, 10]); // a mere click
  const parts = [...area.querySelectorAll('button')].map(({ style }) => [style.left, style.top, style.width, style.height].map(parseFloat));
  expect(parts.map((part) => part.map(Math.round))).toEqual([
    [0, 0, 50, 50],
    [60, 60, 20, 20],
  ]);
  await act(() => render(null, root));
});
