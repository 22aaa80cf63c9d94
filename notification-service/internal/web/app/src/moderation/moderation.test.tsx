import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import { reportService } from '../api/client';
import { scope } from '../state/scope';
import { lightsAlone, ok, refused, report, serve, wholeCity } from '../testing/api';
import { settled } from '../testing/browser';
import { AbuseForm } from './abuse';
import { Moderation } from './moderation';

let root: HTMLElement;
const button = (name: string) => [...root.querySelectorAll('button')].find(({ textContent }) => textContent === name);
const type = (field: HTMLInputElement | HTMLTextAreaElement, value: string) =>
  act(() => {
    field.value = value;
    field.dispatchEvent(new Event('input', { bubbles: true }));
  });
const press = (name: string) =>
  act(async () => {
    button(name)?.click();
    await settled();
  });
const submit = () =>
  act(async () => {
    root.querySelector('form')!.requestSubmit();
    await settled();
  });

beforeEach(() => {
  // jsdom has none.
  HTMLDialogElement.prototype.showModal = vi.fn();
  root = document.createElement('div');
  document.body.append(root);
  scope.value = wholeCity;
});

test('hides with a reason, and shows again', async () => {
  const put = serve(reportService, 'PUT', () => ok({ report: {}, acts: [] }));
  const remove = serve(reportService, 'DELETE', () => ok({ report: {}, acts: [] }));
  const onDone = vi.fn();
  await act(() => render(<Moderation report={report()} onDone={onDone} />, root));
  await press('Hide the report');
  await type(root.querySelector('form input')!, ' It names somebody ');
  await submit();
  expect(put).toHaveBeenCalledWith('/reports/{id}/hidden', { params: { path: { id: 'r1' } }, body: { reason: 'It names somebody' } });
  await act(() => render(<Moderation report={report({ hidden_reason: 'It names somebody' })} onDone={onDone} />, root));
  expect(root.querySelector('[role=status]')?.textContent).toContain('It names somebody');
  await press('Show again');
  expect(remove).toHaveBeenCalled();
  expect(onDone).toHaveBeenCalledTimes(2);
});

test('shows a report to the city alone, and to everybody again', async () => {
  const put = serve(reportService, 'PUT', (_, { body }) =>
    (body as { visibility: string }).visibility === 'public' ? refused(409, 'stays-private') : ok({ report: {}, acts: [] }),
  );
  const onDone = vi.fn();
  await act(() => render(<Moderation report={report()} onDone={onDone} />, root));
  await press('Show it to the city alone');
  expect(put).not.toHaveBeenCalled();
  await type(root.querySelector('form input')!, ' A name ');
  await submit();
  const body = { visibility: 'officials', reason: 'A name' };
  expect(put).toHaveBeenCalledWith('/reports/{id}/visibility', { params: { path: { id: 'r1' } }, body });
  expect(onDone).toHaveBeenCalledTimes(1);
  await act(() => render(<Moderation report={report({ visibility: 'officials' })} onDone={onDone} />, root));
  expect(button('Show it to everybody again')).toBeUndefined(); // its reporter filed it for the city
  await act(() => render(<Moderation report={report({ visibility: 'officials' })} restricted onDone={onDone} />, root));
  await press('Show it to everybody again');
  expect(root.querySelector('[role=alert]')?.textContent).toContain('stays with the city');
});

test('shows a withdrawn report no more', async () => {
  const part = { hidden_reason: 'withdrawn', withdrawn_at: '2026-01-01T12:00:00Z' };
  await act(() => render(<Moderation report={report(part)} onDone={vi.fn()} />, root));
  expect(root.querySelector('[role=status]')?.textContent).toContain('has withdrawn');
  expect(button('Show again')).toBeUndefined();
  expect(button('Hide the report')).toBeUndefined();
});

test('officials of departments read that a report is hidden, and cannot show it', async () => {
  scope.value = lightsAlone;
  await act(() => render(<Moderation report={report({ hidden_reason: 'It names somebody' })} onDone={vi.fn()} />, root));
  expect([root.querySelector('[role=status]')?.textContent, root.querySelector('button')]).toEqual([
    expect.stringContaining('It names somebody'),
    null,
  ]);
});

test('sends the words that are others now, at the version that was read', async () => {
  const history = [
    { to_status: 'pending', note: '', version: 1, changed_at: '2026-01-01T12:00:00Z' },
    { to_status: 'rejected', note: 'Zebra did it', version: 4, changed_at: '2026-01-02T12:00:00Z' },
  ];
  serve(reportService, 'GET', (path) => ok(path.endsWith('history') ? { history } : report({ version: 7, description: 'by Zebra' })));
  const patch = serve(reportService, 'PATCH', () => ok({ report: {}, acts: [] }));
  await act(() => render(<Moderation report={report()} onDone={vi.fn()} />, root));
  await press('Redact words');
  await act(settled); // the dialog has read the words
  expect(button('Redact')?.disabled).toBe(true);
  const [description, note] = root.querySelectorAll('textarea');
  await type(description!, 'by [name]');
  await type(note!, '[name] did it');
  const fields = root.querySelectorAll<HTMLInputElement>('form input');
  await type(fields[fields.length - 1]!, 'A name');
  await submit();
  expect(patch).toHaveBeenCalledWith('/reports/{id}/words', {
    params: { path: { id: 'r1' }, header: { 'If-Match': '"7"' } },
    body: { reason: 'A name', description: 'by [name]', notes: [{ version: 4, note: '[name] did it' }] },
  });
});

test('a resident says what is wrong', async () => {
  const post = serve(reportService, 'POST', () => ok(undefined));
  const onClose = vi.fn();
  await act(() => render(<AbuseForm id="r1" onClose={onClose} />, root));
  await act(() => root.querySelectorAll<HTMLInputElement>('input[type=radio]')[1]!.click());
  await type(root.querySelector('textarea')!, 'Rude');
  await submit();
  expect(post).toHaveBeenCalledWith('/reports/{id}/abuse', { params: { path: { id: 'r1' } }, body: { reason: 'offensive', text: 'Rude' } });
  expect(onClose).toHaveBeenCalled();
});
