import { expect, test, vi } from 'vitest';

import type { Task } from '../../api/client';
import { scope } from '../../state/scope';
import { lightsAlone, report, wholeCity } from '../../testing/api';
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

test('officials of departments forward the report at hand, and those of the whole city do not', () => {
  const openDialog = vi.fn();
  const desk = { task: report(), openDialog } as unknown as Desk;
  scope.value = wholeCity;
  run(desk, COMMANDS.forward);
  expect([openDialog.mock.calls.length, COMMANDS.forward.here()]).toEqual([0, false]);
  scope.value = lightsAlone;
  run(desk, COMMANDS.forward);
  expect(openDialog).toHaveBeenCalledWith({ name: 'forward', task: desk.task });
  expect(COMMANDS.forward.here()).toBe(true);
});
