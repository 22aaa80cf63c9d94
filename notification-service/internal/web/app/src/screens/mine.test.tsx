import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test, vi } from 'vitest';

import { notificationService, reportService } from '../api/client';
import { ok, refused, report, serve } from '../testing/api';
import { MineScreen } from './mine';

test('followed reports are fetched together, twenty at a time and each once; a failure is shown', async () => {
  const ids = Array.from({ length: 25 }, (_, i) => `r${i}`);
  serve(notificationService, 'GET', () => ok({ follows: ids.map((report_id) => ({ report_id })) }));
  let fails = true;
  const asked: string[][] = [];
  serve(reportService, 'GET', (path, { params }) => {
    if (path === '/reports/mine') return ok({ reports: [] });
    const id = params!.query!.id as string[];
    asked.push(id);
    if (fails) return refused(503, 'unavailable');
    return ok({ reports: id.filter((each) => each !== 'r3').map((each) => report({ id: each, title: `Report ${each}` })) });
  });
  const root = document.createElement('div');
  document.body.replaceChildren(root);
  const press = (name: string) => act(() => [...root.querySelectorAll('button')].find(({ textContent }) => textContent === name)!.click());
  const shows = (cards: number) => vi.waitFor(() => expect(root.querySelectorAll('.card')).toHaveLength(cards));
  await act(() => render(<MineScreen />, root));
  await vi.waitFor(() => expect(root.querySelector('[role=alert]')?.textContent).toContain('busy or away'));
  fails = false;
  await press('Try again');
  await shows(19); // one of them is hidden
  await press('Show more');
  await shows(24);
  expect(asked.map((each) => each.length)).toEqual([20, 20, 6]);
  await act(() => render(null, root));
});
