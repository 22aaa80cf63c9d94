import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test, vi } from 'vitest';

vi.mock('../live/live', () => ({ onStream: () => {}, onChange: () => {} }));

import { unread } from '../state/notifications';
import { Bell } from './bell';

test('the bell says how many are unread as it shows it, once, and does not read each of them aloud', async () => {
  unread.value = 120;
  const root = document.createElement('div');
  await act(() => render(<Bell />, root));
  const bell = root.querySelector('button')!;
  expect([bell.getAttribute('aria-label'), bell.textContent]).toEqual(['Notifications, 99+ unread', '99+']);
  expect(root.querySelector('[aria-live], [role=status], [role=log], [aria-pressed]')).toBeNull();
  await act(() => render(null, root));
  unread.value = 0;
});
