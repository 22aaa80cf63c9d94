import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test, vi } from 'vitest';

import { reportService, type Task } from '../../api/client';
import { scope } from '../../state/scope';
import { lightsAlone, ok, refused, report, serve, wholeCity } from '../../testing/api';
import { settled } from '../../testing/browser';
import { Detail } from './detail';

// A report that was just filed is in no list yet.
test('the focus goes on to the report once it is read', async () => {
  const task = { ...report(), title: 'Dark lamp', routed: false, abuse_reports: 0 } as unknown as Task;
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const get = serve(reportService, 'GET', async (path) => {
    await held;
    return path === '/reports/{id}/work' ? ok({ report: task, duplicates: [], disputes: [], acts: [] }) : ok(report());
  });
  const root = document.createElement('div');
  document.body.append(root);
  const none = vi.fn();
  const show = () =>
    render(
      <Detail
        id="r1"
        task={undefined}
        onTask={none}
        onMoved={none}
        onAssign={none}
        onCorrect={none}
        onForward={none}
        onAsk={none}
        onClose={none}
      />,
      root,
    );
  await act(show);
  root.querySelector('h2')!.focus();
  expect(document.activeElement?.textContent).not.toBe('Dark lamp');
  await vi.waitFor(() => expect(get).toHaveBeenCalled());
  release();
  await act(settled);
  expect(document.activeElement?.textContent).toBe('Dark lamp');
});

// Somebody else's act takes a report from the list while it is slow to be read by itself.
test('what is begun on a report outlives its leaving the list', async () => {
  HTMLDialogElement.prototype.showModal = vi.fn(); // jsdom has none
  scope.value = wholeCity;
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
          onForward={vi.fn()}
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

// A colleague has forwarded it, or it was opened by its address.
test('nothing is shown of a report that another department has but the way to its page', async () => {
  scope.value = lightsAlone;
  const none = vi.fn();
  const task = { ...report(), title: 'Dark lamp', routed: false, abuse_reports: 0 } as unknown as Task;
  serve(reportService, 'GET', (path) => (path === '/reports/{id}/work' ? refused(403, 'other-department') : ok(report())));
  const root = document.createElement('div');
  document.body.append(root);
  await act(() =>
    render(
      <Detail
        id="r1"
        task={task}
        onTask={none}
        onMoved={none}
        onAssign={none}
        onCorrect={none}
        onForward={none}
        onAsk={none}
        onClose={none}
      />,
      root,
    ),
  );
  expect(root.querySelector('form')).not.toBeNull();
  await vi.waitFor(() => expect(root.querySelector('[role=alert]')?.textContent).toContain('Another department has this report'));
  expect([root.querySelector('form'), root.querySelector('a')?.getAttribute('href')]).toEqual([null, '/reports/r1']);
});
