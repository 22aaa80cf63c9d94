import { render, type ComponentChild } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test } from 'vitest';

import { notificationService, reportService } from '../../api/client';
import { session } from '../../state/session';
import { ok, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { Audit } from './audit';
import { DeadLetterList } from './dead-letter-list';

const REPORT = '0198c0de-0000-7000-8000-000000000001';

let root: HTMLElement;
const show = async (screen: ComponentChild) => {
  await act(() => render(screen, root));
  await act(settled); // what it reads once it is there
};
const rows = () => [...root.querySelectorAll('li')].map((row) => row.textContent.replaceAll(/\s+/g, ' '));

beforeEach(() => {
  root = document.createElement('div');
  document.body.replaceChildren(root);
});

test('two dead letters of the same cause in the same minute can be told apart, and lead to their reports', async () => {
  const letter = (id: number, second: number) => ({
    id,
    queue: 'queue.vote_received',
    message_id: `m${id}`,
    type: 'report.vote.received',
    error_class: 'permanent',
    error: 'recipient header is missing',
    state: 'open',
    failed_at: `2026-11-22T07:30:0${second}Z`,
    body: { report_id: REPORT },
  });
  serve(notificationService, 'GET', () => ok({ items: [letter(7, 1), letter(8, 2)] }));
  await show(<DeadLetterList />);
  const [first = '', second = ''] = rows();
  expect([first.includes('#7') && first.includes('m7'), second.includes('#8') && second.includes('m8')]).toEqual([true, true]);
  expect([/\b\d\d?[:.]30[:.]01/.test(first), /\b\d\d?[:.]30[:.]02/.test(second)]).toEqual([true, true]);
  expect(root.querySelector(`a[href="/reports/${REPORT}"]`)).not.toBeNull();
});

test('an audit says who did what to what, in words and to the second', async () => {
  session.value = { sub: 'oskar', name: 'Oskar', role: 'operator', expires_at: '2030-01-01T00:00:00Z' };
  const entry = (id: number) => ({
    id,
    at: `2026-11-22T07:30:0${id}Z`,
    actor: id === 1 ? 'oskar' : 'pavel',
    action: 'discard',
    dead_letter_id: id,
    queue: 'queue.vote_received',
    detail: { reason: 'a test', selection: { queue: 'q', error_group: 'g' } },
  });
  serve(notificationService, 'GET', () => ok({ items: [entry(1), entry(2)] }));
  serve(reportService, 'GET', () => ok({ acts: [] }));
  await show(<Audit />);
  const [later = '', earlier = ''] = rows();
  for (const said of ['Discarded', 'by pavel', 'dead_letter 2', 'reason a test', 'selection.error_group g']) expect(later).toContain(said);
  expect(earlier).toContain('by you');
  expect(root.textContent).not.toContain('{');
  expect(/[:.]02\b/.test(later) && /[:.]01\b/.test(earlier)).toBe(true);
  expect(root.querySelector('a[href="/ops/dead-letters/2"]')).not.toBeNull();
});
