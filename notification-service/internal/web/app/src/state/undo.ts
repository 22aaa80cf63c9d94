/** The effect of the last change of status, and the way back. */
import type { MoveResult, Status, Task, Transition } from '../api/client';
import { moveAll } from './queue';

/** Reports whose status an official has just changed. */
export interface Moved {
  to: Status;
  /** As they were before. */
  tasks: Task[];
  /** Those that may go back to what they were without a note, as they are now, and where to; absent until it is known. */
  back?: { task: Task; from: Status }[];
}

/**
 * Says which reports may go back. A step that needs a note is none of them: the
 * note is shown to everyone, and nobody has written it.
 *
 * @param tasks as they were before.
 * @param versionOf the version that each has now.
 * @param transitions where their present status leads to.
 */
export function movedTo(to: Status, tasks: Task[], versionOf: (task: Task) => number, transitions: Transition[]): Moved {
  const open = new Set(transitions.filter(({ note_required }) => !note_required).map(({ status }) => status));
  const back = tasks
    .filter(({ status }) => open.has(status))
    .map((task) => ({ task: { ...task, status: to, transitions, version: versionOf(task) }, from: task.status }));
  return { to, tasks, back };
}

/** Takes reports back to what they were, and returns what came of each. Those that changed in between stay. */
export async function moveBack({ back = [] }: Moved): Promise<MoveResult[]> {
  const results: MoveResult[] = [];
  for (const from of new Set(back.map((each) => each.from))) {
    const tasks = back.filter((each) => each.from === from).map(({ task }) => task);
    results.push(...(await moveAll(tasks, from, '')));
  }
  return results;
}
