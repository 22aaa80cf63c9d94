import { useState } from 'preact/hooks';

import type { Task } from '../../api/client';
import { t } from '../../lang/queue';
import { departments } from '../../state/desk';
import { toast } from '../../state/toasts';
import { forwardReport } from '../../state/work';
import { useAct } from '../../ui/act';
import { Choice, Field } from '../../ui/field';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';

interface Props {
  task: Task;
  /** Called with the report as it is then; without it once it is not the official's any longer. */
  onForwarded(task: Task | undefined): void;
  onClose(): void;
}

/** Gives a report to another department, with a reason for its officials. */
export function ForwardDialog({ task, onForwarded, onClose }: Props) {
  const [to, setTo] = useState('');
  const [reason, setReason] = useState('');
  const { busy, error, submits } = useAct();
  const others = departments.value.filter(({ id }) => id !== task.department_id);
  const submit = submits(async () => {
    const forwarded = await forwardReport(task.id, Number(to), reason.trim());
    toast(t('forward.done', { title: task.title, department: others.find(({ id }) => String(id) === to)?.name ?? '' }));
    onClose();
    onForwarded(forwarded);
  });
  return (
    <Modal title={t('forward')} onClose={onClose}>
      <form class="stack" onSubmit={submit} aria-busy={busy}>
        <p class="quiet">{t('forward.hint')}</p>
        <Choice
          label={t('work.department')}
          data-first
          required
          value={to}
          none={t('forward.choose')}
          options={others.map(({ id, name }) => [id, name])}
          onValue={setTo}
        />
        <Field label={t('reason')} hint={t('forward.reason')} required maxLength={1000} value={reason} onValue={setReason} />
        <Fault error={error} />
        <button class="primary" disabled={busy}>
          {t('forward.do')}
        </button>
      </form>
    </Modal>
  );
}
