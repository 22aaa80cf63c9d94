import { useEffect, useRef, useState } from 'preact/hooks';

import { must, reportService, type MoveResult, type Status, type Task, type Template } from '../../api/client';
import { templates } from '../../state/desk';
import { filtersOf, ORDERS } from '../../state/filters';
import { movedTo, type Moved } from '../../state/undo';
import { chooseTemplate, finishedReport } from '../../state/notes';
import { createQueue } from '../../state/queue';
import { toast } from '../../state/toasts';
import { mergeReport } from '../../state/work';
import { explain } from '../../ui/problem';
import { route, setQuery } from '../../ui/router';
import { useShortcuts } from '../../ui/shortcuts';
import { COMMANDS, ROWS, run, type CommandName } from './commands';
import { useDialog } from './use-dialog';
import { useRow } from './use-row';

/** Kept between visits of the screen, which then shows it at once. */
const queue = createQueue();

type Dialog =
  { name: 'move' | 'assign'; tasks: Task[] } | { name: 'correct' | 'forward' | 'ask'; task: Task } | { name: 'keys' | 'views' | 'intake' };

/** The queue, the report at hand, and what commands do with them. */
function useWork() {
  const { query } = route.value;
  const filters = filtersOf(query);
  const order = ORDERS.find((each) => each === query.get('order')) ?? 'oldest';
  const filtered = JSON.stringify([filters, order]);
  useEffect(() => queue.watch(), []);
  useEffect(() => queue.load(filters, order), [filtered]);

  const rows = useRow(() => queue.tasks.value, query, filtered);
  const dialogs = useDialog<Dialog>(rows.focusPlace);
  const [done, setDone] = useState<Moved>();
  const undo = useRef<() => void>(undefined);
  const id = rows.current ?? rows.atHand?.id;
  return {
    ...rows,
    ...dialogs,
    queue,
    filters,
    order,
    filtered,
    done,
    setDone,
    undo,
    /** The id of the report at hand. */
    id,
    /** The report at hand, if the list has it. */
    task: rows.row ?? rows.atHand,
    chosen: queue.tasks.value.filter((task) => queue.selected.value.has(task.id)),
    /** Shows a report as it is after an act; one that is another department's now is gone, and the next has its place. */
    show({ id }: Task, now: Task | undefined) {
      if (now) return queue.put(now);
      queue.drop(id);
      if (queue.tasks.value.length === 0) {
        rows.setCurrent(undefined);
        setQuery({ report: '' });
      }
      // The dialog, in which the act was, keeps the focus until it is gone.
      setTimeout(rows.advance);
    },
    /** Opens the form of the report at hand, which then asks for a photo of the finished work. */
    finish() {
      if (id) finishedReport.value = id;
      rows.open(id, 'status');
    },
    /** Merges a report with its probable original, and opens the next one. */
    async merge({ id, perhaps_of }: Task) {
      const { after } = rows;
      try {
        queue.put(await mergeReport(id, perhaps_of?.id ?? ''));
        if (rows.current === id || rows.atHand?.id === id) rows.goTo(after);
      } catch (error) {
        toast(explain(error));
      }
    },
    /** Fills in the form of the report at hand. */
    fillIn(template: Template) {
      if (!id) return;
      chooseTemplate(id, template);
      rows.open(id, 'status');
    },
    /** Shows what came of a move of many, and reads whether there is a way back. */
    showMoves(before: Task[], results: MoveResult[], to: Status) {
      queue.moved(results, to);
      const versions = new Map(results.flatMap(({ id, moved, version }) => (moved && version ? [[id, version] as const] : [])));
      const tasks = before.filter(({ id }) => versions.has(id));
      const [one] = tasks;
      if (!one) return;
      setDone({ to, tasks });
      must(reportService.GET('/reports/{id}', { params: { path: { id: one.id } } })).then(
        ({ status, transitions }) => {
          if (status === to) setDone(movedTo(to, tasks, ({ id }) => versions.get(id) ?? 0, transitions));
        },
        () => {}, // no way back is offered
      );
    },
  };
}

export type Desk = ReturnType<typeof useWork>;

/** The desk, with its commands by key and by name. */
export function useDesk() {
  const desk = useWork();
  useShortcuts((key, event) => {
    const template = templates.value?.[Number(key) - 1];
    const command = ROWS.find((each) => each.key === key);
    if (!template && !command) return;
    event.preventDefault();
    if (template) desk.fillIn(template);
    else run(desk, command!);
  });
  return { ...desk, run: (name: CommandName) => run(desk, COMMANDS[name]) };
}
