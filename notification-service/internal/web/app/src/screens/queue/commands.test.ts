import { expect, test, vi } from 'vitest';

import type { Task } from '../../api/client';
import { report } from '../../testing/api';
import { COMMANDS, run } from './commands';
import type { Desk } from './use-desk';

test('one key merges a report that is perhaps a duplicate, and does nothing of another', () => {
  const merge = vi.fn();
  const task = { ...report(), perhaps_of: { id: 'r0', title: 'Lamp is dark' } } as unknown as Task;
  run({ task, merge } as unknown as Desk, COMMANDS.merge);
  expect(merge).toHaveBeenCalledWith(task);
  run({ task: report(), merge } as unknown as Desk, COMMANDS.merge);
  expect([merge.mock.calls.length, COMMANDS.merge.key]).toEqual([1, 'd']);
});

test('one key forwards the report at hand', () => {
  const openDialog = vi.fn();
  run({ openDialog } as unknown as Desk, COMMANDS.forward);
  const desk = { task: report(), openDialog } as unknown as Desk;
  run(desk, COMMANDS.forward);
  expect(openDialog.mock.calls).toEqual([[{ name: 'forward', task: desk.task }]]);
});
