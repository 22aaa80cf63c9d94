import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test } from 'vitest';

import { notificationService, reportService } from '../../api/client';
import { ok, serve } from '../../testing/api';
import { settled } from '../../testing/browser';
import { Console } from './console';

test('each tab says how much waits there', async () => {
  serve(notificationService, 'GET', (path) => {
    switch (path) {
      case '/admin/workers':
        return ok({ items: [], waiting: [], findings: [{ what: 'a queue is missing', remedy: 'declare it' }] });
      case '/admin/dlq/stats':
        return ok({ items: [{ open: 7 }, { open: 5 }] });
      default:
        return ok({ items: [] });
    }
  });
  serve(reportService, 'GET', () => ok({ failed: 3, relay: { connected: true, open_circuits: {} } }));
  const root = document.createElement('div');
  await act(() => render(<Console path={['ops']} />, root));
  await act(settled);
  const counts = [...root.querySelectorAll('nav a')].map((tab) => [
    tab.childNodes[0]?.textContent,
    tab.querySelector('.count')?.textContent,
  ]);
  expect(counts.filter(([, count]) => count !== undefined)).toEqual([
    ['Queues', '1'],
    ['Outbox', '3'],
    ['Dead letters', '12'],
  ]);
  await act(() => render(null, root));
});
