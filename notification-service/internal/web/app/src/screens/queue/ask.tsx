import type { Task } from '../../api/client';
import { t } from '../../lang/queue';
import { templates } from '../../state/desk';
import { keepNote, noteOn } from '../../state/notes';
import { askReporter } from '../../state/work';
import { useAct } from '../../ui/act';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { TemplateField } from '../report/status-form';

interface Props {
  task: Task;
  onTask(task: Task): void;
  onClose(): void;
}

/** Asks the reporter something; what is written is kept until it is sent. */
export function AskDialog({ task, onTask, onClose }: Props) {
  const draft = `question.${task.id}`;
  const text = noteOn(draft);
  const { busy, error, submits } = useAct();
  const submit = submits(async () => {
    onTask(await askReporter(task.id, text.trim()));
    keepNote(draft, '');
    onClose();
  });
  return (
    <Modal title={t('ask')} onClose={onClose}>
      <form class="stack" onSubmit={submit} aria-busy={busy}>
        <p class="quiet">{t('ask.hint')}</p>
        {/* One with a status is not a question. */}
        <TemplateField
          templates={(templates.value ?? []).filter(({ status }) => !status)}
          onChoose={(template) => keepNote(draft, template.text.slice(0, MAX_LETTERS))}
        />
        <label class="field">
          <span>{t('ask.text')}</span>
          <textarea
            data-first
            rows={4}
            required
            maxLength={MAX_LETTERS}
            value={text}
            onInput={(event) => keepNote(draft, event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
            }}
          />
        </label>
        <Fault error={error} />
        <button class="primary">{t('ask.do')}</button>
      </form>
    </Modal>
  );
}

/** As much as the server takes. */
const MAX_LETTERS = 1_000;
