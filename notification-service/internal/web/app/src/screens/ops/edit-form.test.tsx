import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test, vi } from 'vitest';

import { notificationService, type DeadLetter } from '../../api/client';
import { refused, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
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
