import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test, vi } from 'vitest';

import { reportService, type Task } from '../../api/client';
import { report, serve } from '../../testing/api';
import { Detail } from './detail';

// Somebody else's act takes a report from the list while it is slow to be read by itself.
test('what is begun on a report outlives its leaving the list', async () => {
  HTMLDialogElement.prototype.showModal = vi.fn(); // jsdom has none
  serve(reportService, 'GET', () => new Promise(() => {}));
  const root = document.createElement('div');
  document.body.append(root);
  const task = { ...report(), routed: false, abuse_reports: 0 } as unknown as Task;
  const show = (listed: Task | undefined) =>
    act(() =>
      render(
        <Detail
          id="r1"
          task={listed}
          onTask={vi.fn()}
          onMoved={vi.fn()}
          onAssign={vi.fn()}
          onCorrect={vi.fn()}
          onAsk={vi.fn()}
          onClose={vi.fn()}
        />,
        root,
      ),
    );
  await show(task);
  const redact = [...root.querySelectorAll('button')].find(({ textContent }) => textContent === 'Redact words');
  await act(() => redact?.click());
  expect(root.querySelector('dialog')).not.toBeNull();
  await show(undefined);
  expect(root.querySelector('dialog')).not.toBeNull();
});
