import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { notificationService, reportService, type DialogueItem, type Report } from '../api/client';
import { notifications } from '../state/notifications';
import { createReport } from '../state/report';
import { session } from '../state/session';
import { notification, ok, refused, report, serve } from '../testing/api';
import { settled } from '../testing/browser';
import { Items } from './items';
import { OpenQuestions } from './open-questions';
import { ReporterPart } from './reporter';
import { answerOn } from './state';

let root: HTMLElement;
const question = { id: 'q1', asked_at: '2026-01-01T12:00:00Z', ends_on: '2026-01-16' };
const asked: DialogueItem = {
  id: 'q1',
  kind: 'question',
  text: 'Which lamp?',
  created_at: '2026-01-01T12:00:00Z',
  state: 'open',
  ends_on: '2026-01-16',
};
const answered: DialogueItem = { id: 'a1', kind: 'answer', text: 'The one at the bridge.', created_at: '2026-01-02T12:00:00Z' };
const button = (name: string) => [...root.querySelectorAll('button')].find(({ textContent }) => textContent === name);
const press = (name: string) =>
  act(async () => {
    button(name)!.click();
    await settled();
  });
const write = (text: string) =>
  act(() => {
    const field = root.querySelector('textarea')!;
    field.value = text;
    field.dispatchEvent(new Event('input', { bubbles: true }));
  });
const submit = () =>
  act(async () => {
    root.querySelector('form')!.requestSubmit();
    await settled();
  });

/** A service that has the report and its dialogue as they are now. */
function has(now: { report: Report; items?: DialogueItem[] }) {
  return serve(reportService, 'GET', (path) => {
    if (path === '/reports/{id}/dialogue') return ok({ items: now.items ?? [] });
    if (path === '/reports/{id}/history') return ok({ history: [] });
    return path === '/reports/mine' ? ok({ reports: [now.report] }) : ok(now.report);
  });
}

/** Shows the reporter's part of a report that stays current. */
async function open(of: Report) {
  const opened = createReport(of.id);
  const Part = () => (opened.report.value ? <ReporterPart open={opened} report={opened.report.value} /> : null);
  await act(async () => {
    render(<Part />, root);
    await opened.load();
    await settled();
  });
  await act(settled);
}

beforeEach(() => {
  HTMLDialogElement.prototype.showModal = vi.fn(); // jsdom has none
  root = document.createElement('div');
  document.body.append(root);
  notifications.value = [];
  const user = { sub: 'ann', name: 'Ann', role: 'resident', expires_at: '2030-01-01T00:00:00Z' } as const;
  session.value = user;
  serve(notificationService, 'GET', () => ok(user));
});

test('a question is answered, and what is sent again has the same key', async () => {
  const now = { report: report({ mine: true, question }), items: [asked] };
  has(now);
  let fails = true;
  const post = serve(reportService, 'POST', () => {
    if (fails) return refused(503, 'unavailable');
    now.report = report({ mine: true });
    now.items = [{ ...asked, state: 'answered' }, answered];
    return ok({ id: 'a1', answered_at: '2026-01-02T12:00:00Z' });
  });
  await open(now.report);
  expect(root.querySelector('form')?.textContent).toContain('Which lamp?');
  expect(root.textContent).toContain('until you answer, by Friday, January 16');
  expect(root.textContent).toContain('Only you and the city read the question and your answer.');
  await write(' The one at the bridge. ');
  await submit();
  expect([root.querySelector('[role=alert]') === null, answerOn('r1').text]).toEqual([false, ' The one at the bridge. ']);
  fails = false;
  await submit();
  await vi.waitFor(() => act(() => expect(root.querySelector('form')).toBeNull()));
  const [first, second] = post.mock.calls.map(([, options]) => options);
  expect(second?.body).toEqual({ text: 'The one at the bridge.' });
  expect(second?.params?.header).toEqual(first?.params?.header);
  expect([answerOn('r1').text, root.querySelector('form')]).toEqual(['', null]);
  expect(root.querySelector('[role=status]')?.textContent).toBe('The city has your answer.');
  expect(document.activeElement?.textContent).toBe('The city has your answer.');
  expect([...root.querySelectorAll('details .said')].map(({ textContent }) => textContent)).toEqual([
    'Which lamp?',
    'The one at the bridge.',
  ]);
});

test('a report about which nothing was asked shows nothing of it', async () => {
  has({ report: report({ mine: true }) });
  await open(report({ mine: true }));
  expect(root.textContent).toBe('');
});

test('one tap says whether it is fixed, and words may follow', async () => {
  const now = { report: report({ mine: true, status: 'resolved', verdict: { asked: true, until: '2026-01-16T12:00:00Z' } }) };
  has(now);
  const put = serve(reportService, 'PUT', (_, { body }) => {
    now.report = { ...now.report, verdict: { asked: true, until: '2026-01-16T12:00:00Z', ...(body as { fixed: boolean }) } };
    return ok({});
  });
  await open(now.report);
  expect([root.querySelector('h2')?.textContent, root.querySelector('textarea')]).toEqual(['Is it fixed?', null]);
  await press('No, it is not');
  expect(put.mock.calls[0]?.[1].body).toEqual({ fixed: false });
  expect(button('No, it is not')?.getAttribute('aria-pressed')).toBe('true');
  expect(root.textContent).toContain('and not who you are');
  await write('Dark again since Tuesday.');
  await submit();
  expect(put.mock.calls[1]?.[1].body).toEqual({ fixed: false, text: 'Dark again since Tuesday.' });
  await press('Yes, it is fixed');
  expect(put.mock.calls[2]?.[1].body).toMatchObject({ fixed: true });
  expect(root.textContent).toContain('The timeline says that it is confirmed.');
});

test('a verdict that comes too late says so', async () => {
  has({ report: report({ mine: true }) });
  serve(reportService, 'PUT', () => refused(409, 'no-verdict'));
  await open(report({ mine: true }));
  const late = report({ mine: true, verdict: { asked: true, until: '2026-01-16T12:00:00Z' } });
  await act(() => render(<ReporterPart open={createReport('r1')} report={late} />, root));
  await press('Yes, it is fixed');
  expect(root.querySelector('[role=alert]')?.textContent).toContain('The time for this is over');
});

test('words about an earlier resolution stay readable beside the form about the present one', async () => {
  const said = (id: string, fixed: boolean, text: string): DialogueItem => ({
    ...{ id, kind: 'verdict', fixed, text },
    created_at: `2026-01-0${id}T12:00:00Z`,
  });
  const items = [said('1', false, 'Dark again.'), said('2', true, 'Thanks.')];
  const verdict = { asked: true, fixed: true, text: 'Thanks.', until: '2026-01-16T12:00:00Z' };
  const now = { report: report({ mine: true, status: 'resolved', verdict }), items };
  has(now);
  await open(now.report);
  const listed = () => [...root.querySelectorAll('.timeline li')].map(({ textContent }) => textContent);
  expect(listed()).toEqual([expect.stringMatching(/^You said: it is not fixed.*Dark again\.$/)]);
  await act(() => render(<Items items={[...items, { ...said('3', false, ''), duplicate_id: 'r2' }]} forOfficials />, root));
  expect(listed()).toHaveLength(3);
  expect(listed()[2]).toMatch(/^The reporter said: it is not fixed.*The reporter of a duplicate$/);
});

test('officials read who asked, and what became of each question', async () => {
  const by = { id: 'olga', name: 'Olga' };
  const items: DialogueItem[] = [{ ...asked, id: 'q0', by, state: 'expired' }, { ...asked, by, state: 'withdrawn' }, answered];
  await act(() => render(<Items items={items} forOfficials />, root));
  expect([...root.querySelectorAll('.badge')].map(({ textContent }) => textContent)).toEqual([
    'Olga asked',
    'Olga asked',
    'The reporter answered',
  ]);
  expect(root.textContent).toContain('Not answered in time');
  expect(root.textContent).toContain('Only officials and the reporter read this.');
});

test('under the bell an open question stays until it is answered', async () => {
  const now = { report: report({ mine: true, question }) };
  const get = has(now);
  await act(async () => {
    render(<OpenQuestions onClose={vi.fn()} />, root);
    await settled();
  });
  await act(settled);
  expect(root.querySelector('a')?.getAttribute('href')).toBe('/reports/r1');
  now.report = report({ mine: true });
  await act(async () => {
    notifications.value = [notification({ type: 'report.status.updated' })];
    await settled();
  });
  await act(settled);
  expect([root.querySelector('a'), get.mock.calls.length]).toEqual([null, 2]);
});
