import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test } from 'vitest';

import { notificationService, type EmailStatus } from '../../../api/client';
import { ok, serve } from '../../../testing/api';
import { settled } from '../../../testing/browser';
import { Email } from './email';

let root: HTMLElement;
const show = async (status: EmailStatus) => {
  serve(notificationService, 'GET', () => ok(status));
  await act(() => render(<Email />, root));
  await act(settled);
};

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
});

test('shows where mails are stuck, and what came back', async () => {
  await show({
    as_of: '2026-11-22T09:00:00Z',
    lanes: [
      { lane: 'gmail.com', waiting: 1200, waiting_since: '2026-11-22T07:00:00Z' },
      { lane: 'others', waiting: 0 },
    ],
    bounces: [
      { lane: 'gmail.com', code: '5.1.1', hard: true, count: 40 },
      { lane: 'others', code: 'complaint', hard: true, count: 20 },
    ],
  });
  const rows = [...root.querySelectorAll('li')].map((row) => row.textContent);
  expect(rows).toHaveLength(4);
  expect(rows[0]).toContain('1,200 people or more wait');
  expect(root.querySelector('li time')?.getAttribute('dateTime')).toBe('2026-11-22T07:00:00.000Z');
  expect(rows[1]).toContain('All other hosts');
  expect(rows[1]).toContain('fewer than 40 people wait');
  expect(rows[2]).toContain('40 people or more');
  expect(rows[3]).toContain('Marked as spam');
  expect(rows[3]).toContain('All other hosts');
});

test('says that nothing came back', async () => {
  await show({ as_of: '2026-11-22T09:00:00Z', lanes: [{ lane: 'others', waiting: 0 }], bounces: [] });
  expect(root.textContent).toContain('Nothing came back from 20 people or more.');
});
