import { expect, test } from 'vitest';

import { reportService, type Task } from '../api/client';
import { ok, report, serve } from '../testing/api';
import { movedTo, moveBack } from './undo';

const task = (part: Partial<Task>) => ({ ...report(), routed: false, abuse_reports: 0, ...part }) as unknown as Task;
const free = [{ status: 'pending' as const, note_required: false }];

test('goes back only where no note is needed', () => {
  const tasks = [task({ id: 'r1', status: 'pending' }), task({ id: 'r2', status: 'in_progress' })];
  const moved = movedTo('resolved', tasks, () => 2, [{ status: 'in_progress', note_required: true }]);
  expect(moved.back).toEqual([]);
  expect(movedTo('in_progress', tasks, () => 2, free).back?.map(({ task, from }) => [task.id, task.version, task.status, from])).toEqual([
    ['r1', 2, 'in_progress', 'pending'],
  ]);
});

test('takes all back at the version that they were left at', async () => {
  const post = serve(reportService, 'POST', () => ok({ results: [{ id: 'r1', moved: true, version: 3 }] }));
  const moved = movedTo('in_progress', [task({ id: 'r1', version: 1 })], () => 2, free);
  expect(await moveBack(moved)).toEqual([{ id: 'r1', moved: true, version: 3 }]);
  expect(post.mock.calls[0]?.[1].body).toEqual({ reports: [{ id: 'r1', version: 2 }], status: 'pending' });
});
