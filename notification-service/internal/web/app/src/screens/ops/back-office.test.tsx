import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { notificationService } from '../../api/client';
import { categories } from '../../state/categories';
import { ok, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { BackOffice } from './back-office';

let root: HTMLElement;
const target = {
  id: '0198c0de-0000-7000-8000-000000000001',
  name: 'Works',
  url: 'https://works.example.org/open311/v2',
  jurisdiction: '',
  has_key: true,
  services: [{ category_id: 2, service_code: 'LIGHT' }],
  statuses: [{ word: 'crew_booked', status: 'action_scheduled' }],
  repeats: false,
  enabled: true,
  version: 1,
  created_at: '2026-11-27T08:00:00Z',
  problem: 'fetch updates: timeout',
};
const difference = {
  target_id: target.id,
  report_id: '0198c0de-0000-7000-8000-000000000002',
  kind: 'no_number',
  since: '2026-11-28T08:00:00Z',
  status: 'pending',
  undecided: true,
  unknown: true,
};
const closed = {
  ...difference,
  report_id: '0198c0de-0000-7000-8000-000000000003',
  kind: 'other_status',
  number: 'W-7',
  their_status: 'fixed',
  undecided: false,
};

const show = async () => {
  serve(notificationService, 'GET', (path) =>
    ok(path === '/admin/open311/targets' ? { targets: [target] } : { differences: [difference, closed] }),
  );
  await act(() => render(<BackOffice />, root));
  await act(settled);
};
const click = (name: string) =>
  act(async () => {
    [...document.querySelectorAll('button')].findLast((button) => button.textContent === name)!.click();
    await settled();
  });
const fill = (label: string, value: string) =>
  act(() => {
    const field = [...document.querySelectorAll('label')]
      .find((each) => each.textContent.includes(label))!
      .querySelector<HTMLInputElement>('input,textarea')!;
    field.value = value;
    field.dispatchEvent(new Event('input', { bubbles: true }));
  });

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
  categories.value = [{ id: 2, name: 'Street lights' }] as typeof categories.value;
});
afterEach(() => render(null, root));

test('what differs is shown, and an operator decides about a report that may have arrived', async () => {
  await show();
  expect(root.textContent).toContain('fetch updates: timeout');
  expect(root.textContent).toContain('It may have arrived');
  expect(root.textContent).toContain('W-7');
  const decide = serve(notificationService, 'POST', () => ok(undefined));
  await click('Decide');
  await fill('Its number there', 'W-8');
  await click('It arrived');
  expect(decide.mock.lastCall?.[1]).toMatchObject({
    body: { number: 'W-8' },
    params: { path: { id: target.id, report_id: difference.report_id } },
  });
  await click('Decide');
  await click('Send it again');
  expect(decide.mock.lastCall?.[1]).toMatchObject({ body: {} });
});

test('a system is changed without its keys', async () => {
  await show();
  const change = serve(notificationService, 'PATCH', () => ok(target));
  await click('Change');
  await fill('Street lights', 'LAMP');
  await fill('Other words', 'done = fixed\n\nlunch = internal_referral');
  await click('Save');
  const body = (change.mock.lastCall?.[1] as { body: Record<string, unknown> }).body;
  expect(body).toMatchObject({
    name: 'Works',
    services: [{ category_id: 2, service_code: 'LAMP' }],
    statuses: [
      { word: 'done', status: 'fixed' },
      { word: 'lunch', status: 'internal_referral' },
    ],
  });
  expect(body).not.toHaveProperty('api_key');
  expect(body).not.toHaveProperty('connection_key');
});
