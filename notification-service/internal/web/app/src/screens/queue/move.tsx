import { useState } from 'preact/hooks';

import { STATUSES, type MoveResult, type Status, type Task } from '../../api/client';
import { isWord, t, tn } from '../../lang/queue';
import { templates } from '../../state/desk';
import { moveAll } from '../../state/queue';
import { useAct } from '../../ui/act';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { TemplateField } from '../report/status-form';

interface Props {
  tasks: Task[];
  onMoved(results: MoveResult[], to: Status): void;
  onClose(): void;
}

/** Moves many reports at once, each by itself, and says what came of each that was refused. */
export function MoveDialog({ tasks, onMoved, onClose }: Props) {
  const [status, setStatus] = useState<Status>();
  const [note, setNote] = useState('');
  const { busy, error, submits } = useAct();
  const [results, setResults] = useState<MoveResult[]>();
  const ways = (to: Status) => tasks.flatMap(({ transitions }) => transitions.filter((transition) => transition.status === to));
  const choices = STATUSES.filter((to) => ways(to).length > 0);
  const required = status !== undefined && ways(status).some(({ note_required }) => note_required);

  const submit = submits(async () => {
    if (!status) return;
    const outcome = await moveAll(tasks, status, note.trim());
    onMoved(outcome, status);
    if (outcome.every(({ moved }) => moved)) onClose();
    setResults(outcome);
  });
  if (results) return <Outcome tasks={tasks} results={results} onClose={onClose} />;
  return (
    <Modal title={tn('work.move-these', tasks.length)} onClose={onClose}>
      <form class="stack" onSubmit={submit} aria-busy={busy}>
        <fieldset class="choices">
          <legend>{t('change-status.to')}</legend>
          {choices.map((to, i) => (
            <label key={to} class="chip">
              <input type="radio" name="move-to" data-first={i === 0} required checked={status === to} onChange={() => setStatus(to)} />
              <span>
                {t(`status.${to}`)}
                {ways(to).length < tasks.length && ` (${ways(to).length})`}
              </span>
            </label>
          ))}
        </fieldset>
        <TemplateField
          templates={templates.value ?? []}
          onChoose={({ status: to, text }) => {
            if (to && choices.includes(to)) setStatus(to);
            setNote(text);
          }}
        />
        <label class="field">
          <span>{t(required ? 'change-status.note-required' : 'change-status.note')}</span>
          <textarea rows={3} maxLength={2000} required={required} value={note} onInput={(e) => setNote(e.currentTarget.value)} />
        </label>
        <Fault error={error} />
        <button class="primary" disabled={busy}>
          {tn('work.move-these', tasks.length)}
        </button>
      </form>
    </Modal>
  );
}

function Outcome({ tasks, results, onClose }: { tasks: Task[]; results: MoveResult[]; onClose(): void }) {
  const refused = results.filter(({ moved }) => !moved);
  const titles = new Map(tasks.map(({ id, title }) => [id, title]));
  return (
    <Modal title={t('work.outcome')} onClose={onClose}>
      <p role="status">
        {tn('work.were-moved', results.length - refused.length)} {tn('work.were-refused', refused.length)}
      </p>
      <ul class="picker">
        {refused.map(({ id, problem = '', detail = '' }) => {
          const key = `problem.${problem}`;
          return (
            <li key={id}>
              <strong class="wrap">{titles.get(id)}</strong>
              <p class="fault">{isWord(key) ? t(key) : detail}</p>
            </li>
          );
        })}
      </ul>
      <button type="button" class="primary" data-first onClick={onClose}>
        {t('close')}
      </button>
    </Modal>
  );
}
