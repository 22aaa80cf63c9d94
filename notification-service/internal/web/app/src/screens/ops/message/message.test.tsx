import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { notificationService, reportService } from '../../../api/client';
import { ok, refused, serve } from '../../../testing/api';
import { settled } from '../../../testing/browser';
import '../../../testing/unmount';
import { MessageStory } from './message';
import { readStory } from './story';

const id = '0198c0de-0000-7000-8000-000000000001';
const report = '0198c0de-0000-7000-8000-000000000002';
const endpoint = '0198c0de-0000-7000-8000-000000000003';

const at = (second: number) => new Date(Date.UTC(2026, 10, 21, 9, 0, second)).toISOString();
const row = (status: string) => ({ id, routing_key: 'report.created', report_id: report, status, last_error: 'NO_ROUTE' });
const accepted = { at: at(0), kind: 'accepted', place: 'outbox' };
const published = { at: at(2), kind: 'published', place: 'outbox', duration_ms: 2000, attempts: 1 };
const handled = { at: at(3), kind: 'handled', place: 'queue.report_created' };
const dead = {
  at: at(1),
  kind: 'dead_lettered',
  place: 'queue.report_created',
  dead_letter_id: 17,
  class: 'permanent',
  reason: 'SQLSTATE 23505',
};
const resolved = { at: at(4), kind: 'resolved', place: 'queue.report_created', dead_letter_id: 17 };

beforeEach(() => vi.restoreAllMocks());

/** Lets the services answer with these. */
const tell = (outbox: object, effects: object[]) => ({
  reports: serve(reportService, 'GET', () => ok(outbox)),
  notifications: serve(notificationService, 'GET', (path) =>
    ok(
      path === '/admin/webhooks'
        ? { items: [{ id: endpoint, description: 'Work orders', url: 'https://example.org' }] }
        : { entries: effects },
    ),
  ),
});

test('both sides are one story, by time, no effect before its publishing, and the report leads to the number in its stream', async () => {
  const { notifications } = tell({ message: row('published'), trace_id: 't', entries: [accepted, published] }, [dead, handled, resolved]);
  const story = await readStory(id);
  expect(story.entries.map(({ kind }) => kind)).toEqual(['accepted', 'published', 'dead_lettered', 'handled', 'resolved']);
  expect(story).toMatchObject({ trace: 't', errors: [], missing: [] });
  expect(notifications.mock.lastCall?.[1].params).toEqual({ path: { id }, query: { report_id: report } });
});

test.each([
  ['pending', [accepted], [], ['not-published']],
  ['failed', [accepted], [], ['failed']],
  ['published', [accepted, published], [], ['not-handled']],
  ['published', [accepted, published, handled], [], []], // by the photo worker
  ['published', [accepted, published], [dead], ['letter-open']],
  ['published', [accepted, published], [dead, handled, resolved], []],
])('of a message that is %s is missing', async (status, outbox, effects, missing) => {
  tell({ message: row(status), entries: outbox }, effects);
  expect((await readStory(id)).missing).toEqual(missing);
});

test('a message that the outbox no longer has is still told from the other side', async () => {
  tell({ entries: [] }, [handled]);
  expect(await readStory(id)).toMatchObject({ entries: [handled], missing: ['gone'] });
});

test('an id that is none of the outbox is asked for on the other side alone', async () => {
  const { reports } = tell({ entries: [] }, [dead]);
  expect((await readStory('of/another program')).entries).toEqual([dead]);
  expect(reports).not.toHaveBeenCalled();
});

test('a service that does not answer takes nothing from the other, and nothing counts as missing', async () => {
  serve(reportService, 'GET', () => ok({ message: row('published'), entries: [accepted, published] }));
  serve(notificationService, 'GET', () => refused(503, 'unavailable'));
  const story = await readStory(id);
  expect(story.entries).toEqual([accepted, published]);
  expect(story.errors).toHaveLength(1);
  expect(story.missing).toEqual([]);
});

const root = document.createElement('div');

test('the timeline leads to dead letters and deliveries, and says what is missing', async () => {
  tell({ message: row('pending'), trace_id: 'abc', entries: [accepted] }, [
    dead,
    { at: at(5), kind: 'delivery_attempted', place: endpoint, delivery_id: 7, attempts: 1, status: 503, class: 'answer', duration_ms: 120 },
    { at: at(6), kind: 'numbered', place: 'officials', number: 41 },
  ]);
  document.body.replaceChildren(root);
  await act(() => render(<MessageStory path={[id]} />, root));
  await act(settled);
  expect(root.querySelectorAll('.timeline li')).toHaveLength(4);
  expect(root.querySelector('.timeline')!.textContent).toContain('Work orders');
  expect(root.querySelector('a[href="/ops/dead-letters/17"]')).not.toBeNull();
  expect(root.querySelector(`a[href="/ops/webhooks/${endpoint}/7"]`)).not.toBeNull();
  expect(root.querySelector(`a[href="/reports/${report}"]`)).not.toBeNull();
  expect(root.querySelector('a[href="/ops/search?q=abc"]')).not.toBeNull();
  expect(root.querySelector('.timeline')?.textContent).toContain('HTTP 503');
  expect(root.querySelector('.timeline')?.textContent).toContain('number 41');
  expect(root.querySelector('[role=status]')?.textContent).toContain('Not published yet.');
});

test('an address that encodes nothing is shown as it is', async () => {
  const { notifications } = tell({ entries: [] }, []);
  document.body.replaceChildren(root);
  await act(() => render(<MessageStory path={['%']} />, root));
  await act(settled);
  expect(notifications.mock.lastCall?.[1].params?.['path']).toEqual({ id: '%' });
});
