/** The commands of the desk: a row for each, which the shortcuts, the buttons and the help read. */
import type { Word } from '../../lang/queue';
import type { Desk } from './use-desk';

interface Command {
  /** As the browser calls it; absent where the table or the field has the key. */
  key?: string;
  /** As the help shows them, if they have other names or there are more. */
  keys?: string[];
  help: Word;
  /** Without it the command is always allowed. */
  allowed?(desk: Desk): unknown;
  run?(desk: Desk): void;
}

const isOpen = ({ task }: Desk) => task?.status === 'pending' || task?.status === 'in_progress';

export const COMMANDS = {
  next: { key: 'j', keys: ['j', '↓'], help: 'work.key.next', run: ({ goTo, after }) => goTo(after) },
  previous: { key: 'k', keys: ['k', '↑'], help: 'work.key.previous', run: ({ goTo, before }) => goTo(before) },
  open: { key: 'o', keys: ['Enter', 'o'], help: 'work.key.open', run: ({ open, id }) => open(id) },
  select: {
    key: 'x',
    keys: ['x', 'Space'],
    help: 'work.key.select',
    allowed: ({ row }) => row,
    run: ({ queue, row }) => queue.toggle(row!.id),
  },
  range: { keys: ['Shift ↓', 'Shift ↑'], help: 'work.key.range' },
  all: { keys: ['Ctrl a'], help: 'work.key.all' },
  move: {
    key: 'm',
    help: 'work.key.move',
    run: ({ chosen, openDialog, open, id }) => (chosen.length > 0 ? openDialog({ name: 'move', tasks: chosen }) : open(id, 'status')),
  },
  assign: {
    key: 'a',
    help: 'work.key.assign',
    allowed: ({ task }) => task,
    run: ({ chosen, task, openDialog }) => openDialog({ name: 'assign', tasks: chosen.length > 0 ? chosen : [task!] }),
  },
  correct: {
    key: 'e',
    help: 'work.key.correct',
    allowed: ({ task }) => task && !task.hidden_reason,
    run: ({ task, openDialog }) => openDialog({ name: 'correct', task: task! }),
  },
  forward: {
    key: 'w',
    help: 'work.key.forward',
    allowed: ({ task }) => task,
    run: ({ task, openDialog }) => openDialog({ name: 'forward', task: task! }),
  },
  firm: { key: 'r', help: 'work.key.firm', run: () => document.querySelector<HTMLElement>('.firm-done')?.click() },
  merge: {
    key: 'd',
    help: 'work.key.merge',
    allowed: ({ task }) => task?.perhaps_of,
    run: ({ task, merge }) => void merge(task!),
  },
  note: { key: 'n', help: 'work.key.note', run: ({ open, id }) => open(id, 'note') },
  ask: {
    key: 'q',
    help: 'work.key.ask',
    allowed: (desk) => isOpen(desk) && !desk.task?.question && !desk.task?.hidden_reason,
    run: ({ task, openDialog }) => openDialog({ name: 'ask', task: task! }),
  },
  photo: { key: 'p', help: 'work.key.photo', allowed: ({ id }) => id, run: ({ finish }) => finish() },
  template: { keys: ['1', '…', '9'], help: 'work.key.template' },
  undo: { key: 'u', help: 'work.key.undo', run: ({ undo }) => undo.current?.() },
  intake: { key: 'f', help: 'work.key.intake', run: ({ openDialog }) => openDialog({ name: 'intake' }) },
  views: { key: 'v', help: 'work.key.views', run: ({ openDialog }) => openDialog({ name: 'views' }) },
  search: { key: '/', help: 'work.key.search', run: () => document.querySelector<HTMLElement>('.workbench [type=search]')?.focus() },
  back: {
    key: 'Escape',
    keys: ['Esc'],
    help: 'work.key.back',
    run: ({ queue, table, close }) =>
      queue.selected.value.size > 0 && table.current?.contains(document.activeElement) ? queue.select([]) : close(),
  },
  help: { key: '?', help: 'work.key.help', run: ({ openDialog }) => openDialog({ name: 'keys' }) },
} satisfies Record<string, Command>;

export type CommandName = keyof typeof COMMANDS;
export const ROWS: Command[] = Object.values(COMMANDS);

/** Does what a command says, if it is allowed. */
export function run(desk: Desk, { allowed, run }: Command): void {
  if (!allowed || allowed(desk)) run?.(desk);
}
