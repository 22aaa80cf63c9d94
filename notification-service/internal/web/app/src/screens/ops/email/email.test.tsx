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

test('shows what waits for each host, and what came back', async () => {
  await show({
    lanes: [
      {
        lane: 'gmail.com',
        waiting: 1200,
        oldest_due_at: '2026-11-22T07:00:00Z',
        rate: 2.46,
        failures: 6,
        open_until: '2026-11-22T07:10:00Z',
      },
      { lane: 'host-a2b3c4d5', waiting: 1, failures: 0 },
    ],
    bounces: [
      { lane: 'gmail.com', code: '5.1.1', hard: true, count: 3 },
      { lane: 'gmail.com', code: 'complaint', hard: true, count: 1 },
    ],
  });
  const rows = [...root.querySelectorAll('li')].map((row) => row.textContent);
  expect(rows).toHaveLength(4);
  expect(rows[0]).toContain('1,200 wait');
  expect(rows[0]).toContain('at most 2.5/s');
  expect(rows[0]).toContain('6 failures in a row');
  expect(rows[1]).toContain('1 waits');
  expect(rows[1]).not.toContain('failure');
  expect(rows[2]).toContain('3 mails');
  expect(rows[3]).toContain('Marked as spam');
});

test('says that there is nothing yet', async () => {
  await show({ lanes: [], bounces: [] });
  expect(root.textContent).toContain('No mail has been sent');
  expect(root.textContent).toContain('Nothing came back.');
});
