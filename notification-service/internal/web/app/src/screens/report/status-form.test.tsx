import { render } from 'preact';
import { act } from 'preact/test-utils';
import { beforeEach, expect, test, vi } from 'vitest';

import type { Report } from '../../api/client';
import { config } from '../../state/config';
import { finishedReport } from '../../state/notes';
import { report } from '../../testing/api';
import { settled } from '../../testing/browser';
import { StatusForm } from './status-form';

let root: HTMLElement;
const changeStatus = vi.fn(() => Promise.resolve());
const reply = vi.fn(() => Promise.resolve());
const show = (part: Partial<Report> = {}) => act(() => render(<StatusForm open={{ changeStatus, reply }} report={report(part)} />, root));
const choices = () => [...root.querySelectorAll('.chip')].map((chip) => chip.textContent);
const choose = (name: string) =>
  act(() =>
    [...root.querySelectorAll<HTMLElement>('.chip')]
      .find((chip) => chip.textContent === name)
      ?.querySelector('input')
      ?.click(),
  );
const note = () => root.querySelector('textarea')!;

beforeEach(() => {
  root = document.createElement('div');
  document.body.append(root);
});

test('offers what report-service allows, in its order', async () => {
  await show();
  expect(choices()).toEqual(['In progress', 'Resolved', 'Rejected', 'Keep the status']);
  await show({ transitions: [{ status: 'pending', note_required: true }] });
  expect(choices()).toEqual(['Received', 'Keep the status']);
});

test('asks for a note where report-service requires one', async () => {
  await show();
  await choose('Resolved');
  expect(note().required).toBe(false);
  await choose('Rejected');
  expect(note().required).toBe(true);
});

test('sends what was chosen, and is empty again', async () => {
  await show();
  await choose('Resolved');
  await act(() => {
    note().value = ' Done. ';
    note().dispatchEvent(new Event('input', { bubbles: true }));
  });
  await act(async () => {
    root.querySelector('form')!.requestSubmit();
    await settled();
  });
  expect(changeStatus).toHaveBeenCalledWith(report(), 'resolved', 'Done.');
  expect(note().value).toBe('');
});

test('replies without a change of status, as often as there is something to say', async () => {
  await show();
  expect(note().required).toBe(true);
  for (const text of ['We look at it on Thursday.', 'It rains; Friday then.']) {
    await act(() => {
      note().value = text;
      note().dispatchEvent(new Event('input', { bubbles: true }));
    });
    await act(async () => {
      root.querySelector('form')!.requestSubmit();
      await settled();
    });
    expect(reply).toHaveBeenLastCalledWith(text);
    expect([note().value, root.querySelector('p[role=status]')?.textContent]).toEqual(['', 'The reply is sent.']);
  }
  expect(reply).toHaveBeenCalledTimes(2);
});

test('has the note again that was not saved', async () => {
  await show({ id: 'r2' });
  await act(() => {
    note().value = 'A crew is';
    note().dispatchEvent(new Event('input', { bubbles: true }));
  });
  await act(() => render(null, root));
  await show({ id: 'r3' });
  expect(note().value).toBe('');
  await show({ id: 'r2' });
  expect(note().value).toBe('A crew is');
});

test('says when another official was faster, and keeps the note', async () => {
  await show();
  await choose('Rejected');
  await act(() => {
    note().value = 'Not ours.';
    note().dispatchEvent(new Event('input', { bubbles: true }));
  });
  await show({ status: 'resolved', transitions: [{ status: 'in_progress', note_required: true }] });
  expect(root.querySelector('[role=status]')?.textContent).toContain('now “Resolved”');
  expect(note().value).toBe('Not ours.');
  expect(root.querySelector('.chip:has(:checked)')?.textContent).toBe('Keep the status');
});

test('offers a photo of the finished work where the report is resolved, and a key asks for one', async () => {
  config.photos = true;
  await show({ id: 'r4' });
  expect(root.querySelector('input[type=file]')).toBeNull();
  const asked = vi.spyOn(HTMLInputElement.prototype, 'click');
  await act(() => void (finishedReport.value = 'r4'));
  expect([root.querySelector('.chip:has(:checked)')?.textContent, finishedReport.value]).toEqual(['Resolved', undefined]);
  expect(asked.mock.contexts).toEqual([root.querySelector('input[type=file]')]);
  await choose('In progress');
  expect(root.querySelector('input[type=file]')).toBeNull();
});
