import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test, vi } from 'vitest';

import { notificationService, type DeadLetter } from '../../api/client';
import { ok, refused, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { contractTypes, fieldsOf } from './contract';
import { EditForm } from './edit-form';

test('all faults of a body are named at once', async () => {
  HTMLDialogElement.prototype.showModal = vi.fn(); // jsdom has no modal dialogs
  serve(notificationService, 'POST', () =>
    refused(400, 'invalid-input', [
      { pointer: '/body', detail: 'body breaks the contract: report_title: must be a text that is not empty' },
      { pointer: '/body', detail: 'body breaks the contract: new_score: must be of another type' },
    ]),
  );
  const root = document.createElement('div');
  document.body.replaceChildren(root);
  const letter = { id: 7, body: { report_title: '' } } as unknown as DeadLetter;
  await act(() => render(<EditForm letter={letter} onClose={() => {}} />, root));
  await act(async () => {
    root.querySelector('form')!.requestSubmit();
    await settled();
  });
  const said = [...root.querySelectorAll('p.fault:not([role])')].map(({ textContent }) => textContent);
  expect(said).toEqual([expect.stringContaining('report_title'), expect.stringContaining('new_score')]);
});

test('a required field that is missing is named before anything is sent', async () => {
  HTMLDialogElement.prototype.showModal = vi.fn();
  const sent = serve(notificationService, 'POST', () => ok({ changes: [] }));
  const root = document.createElement('div');
  document.body.replaceChildren(root);
  const body = { report_id: '2f0c1bfe-6a34-4f39-8f41-2a8ed7a1d5a1', report_title: '', timestamp: 1764240000 };
  const letter = { id: 7, type: 'report.status.updated', body } as unknown as DeadLetter;
  await act(() => render(<EditForm letter={letter} onClose={() => {}} />, root));
  const text = root.querySelector('textarea')!;
  expect(root.querySelector('#edit-missing')!.textContent).toBe('Missing: report_title, new_status');
  expect(text.getAttribute('aria-describedby')).toBe('edit-missing');
  expect(root.querySelector('[data-required]')!.textContent).toContain('pending · in_progress · resolved · rejected – missing');
  await act(() => root.querySelector('form')!.requestSubmit());
  expect(sent).not.toHaveBeenCalled();

  text.value = JSON.stringify({ ...body, report_title: 'Lamp', new_status: 'resolved' });
  await act(() => void text.dispatchEvent(new Event('input', { bubbles: true })));
  expect(root.querySelector('#edit-missing')).toBeNull();
  await act(async () => {
    root.querySelector('form')!.requestSubmit();
    await settled();
  });
  expect(sent).toHaveBeenCalledTimes(1);
});

test('every type of message has the fields that its contract requires', () => {
  expect(contractTypes).toHaveLength(18);
  expect(contractTypes.filter((type) => fieldsOf(type).length < 4)).toEqual([]);
  expect(fieldsOf('vote.of.another')).toEqual([]);
});
