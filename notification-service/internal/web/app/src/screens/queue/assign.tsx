import { useState } from 'preact/hooks';

import type { Assignment, Person, Task } from '../../api/client';
import { t, tn } from '../../lang/queue';
import { departments, me, officials } from '../../state/desk';
import { isLimited, ownOf } from '../../state/scope';
import { assignmentOf, assignReport } from '../../state/work';
import { Modal } from '../../ui/modal';
import { explain } from '../../ui/problem';
import { holdingKeys } from '../../ui/shortcuts';
import { Picker, type Choice } from './picker';

interface Props {
  tasks: Task[];
  onTask(task: Task): void;
  onClose(): void;
}

/**
 * Gives reports to an official or to a department; what is not chosen stays as
 * it is. What came of each is said if one was refused.
 */
export function AssignDialog({ tasks, onTask, onClose }: Props) {
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<{ task: Task; why: string }[]>([]);
  const assign = async (change: (before: Assignment) => Assignment) => {
    setBusy(true);
    const faults: typeof refused = [];
    // One after the other: a gateway takes so many changes a second of one user.
    await holdingKeys(async () => {
      for (const task of tasks) {
        try {
          onTask((await assignReport(task.id, change(assignmentOf(task)))).report);
        } catch (failure) {
          faults.push({ task, why: explain(failure) });
        }
      }
    });
    setBusy(false);
    setRefused(faults);
    if (faults.length === 0) onClose();
  };
  const to = (person: Person | undefined) =>
    assign(({ department_id }) => ({ ...(person && { assignee: person }), ...(department_id && { department_id }) }));
  const toDepartment = (id: number | undefined) =>
    assign(({ assignee }) => ({ ...(assignee && { assignee }), ...(id && { department_id: id }) }));

  const others = officials.value.filter(({ id }) => id !== me().id);
  const choices: Choice[] = [
    { key: 'me', name: t('work.me', { name: me().name }), onChoose: () => void to(me()) },
    ...others.map((person) => ({ key: person.id, name: person.name, onChoose: () => void to(person) })),
    ...ownOf(departments.value).map(({ id, name }) => ({
      key: `department-${id}`,
      name,
      about: t('work.department'),
      onChoose: () => void toDepartment(id),
    })),
    { key: 'nobody', name: t('work.nobody'), onChoose: () => void to(undefined) },
    ...(departments.value.length > 0 && !isLimited()
      ? [{ key: 'category', name: t('work.by-category'), onChoose: () => void toDepartment(undefined) }]
      : []),
  ];
  return (
    <Modal title={tn('work.assign-to', tasks.length)} onClose={onClose}>
      {refused.length > 0 && (
        <ul class="fault" role="alert">
          {refused.map(({ task, why }) => (
            <li key={task.id}>
              {task.title}: {why}
            </li>
          ))}
        </ul>
      )}
      <Picker label={t('work.who')} choices={choices} busy={busy} />
    </Modal>
  );
}
