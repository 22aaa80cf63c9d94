import { useState } from 'preact/hooks';

import type { Task } from '../../api/client';
import { t } from '../../lang/queue';
import { departments } from '../../state/desk';
import { toast } from '../../state/toasts';
import { forwardReport, sendToFirm } from '../../state/work';
import { useAct } from '../../ui/act';
import { Choice, Field, Lines } from '../../ui/field';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { EditFirms, useFirms } from './firm';

interface Props {
  task: Task;
  /** Called with the report as it is then; without it once it is not the official's any longer. */
  onForwarded(task: Task | undefined): void;
  onClose(): void;
}

/** Gives a report to another department, with a reason for its officials, or to a firm of its own, with words for that. */
export function ForwardDialog({ task, onForwarded, onClose }: Props) {
  const [to, setTo] = useState('');
  const [reason, setReason] = useState('');
  const { busy, error, submits } = useAct();
  const others = departments.value.filter(({ id }) => id !== task.department_id);
  const list = useFirms(task.department_id);
  const firm = list.firms.find(({ id }) => id === to);
  const submit = submits(async () => {
    if (firm) {
      await sendToFirm(task.id, firm.id, reason.trim());
      toast(t('forward.done', { title: task.title, department: firm.name }));
      return onClose();
    }
    const forwarded = await forwardReport(task.id, Number(to), reason.trim());
    toast(t('forward.done', { title: task.title, department: others.find(({ id }) => String(id) === to)?.name ?? '' }));
    onClose();
    onForwarded(forwarded);
  });
  return (
    <Modal title={t('forward')} onClose={onClose}>
      <form class="stack" onSubmit={submit} aria-busy={busy}>
        <p class="quiet">{t(firm ? 'firm.hint' : 'forward.hint')}</p>
        <Choice
          label={t(list.firms.length > 0 ? 'firm.to' : 'work.department')}
          data-first
          required
          value={to}
          none={t(list.firms.length > 0 ? 'template.choose' : 'forward.choose')}
          options={[
            ...others.map(({ id, name }) => [id, name] as const),
            ...list.firms.map(({ id, name }) => [id, t('firm.option', { name })] as const),
          ]}
          onValue={setTo}
        />
        {firm ? (
          <Lines
            label={t('firm.text')}
            hint={t('firm.text.hint')}
            required={task.visibility === 'officials'}
            rows={3}
            maxLength={800}
            value={reason}
            onValue={setReason}
          />
        ) : (
          <Field label={t('reason')} hint={t('forward.reason')} required maxLength={1000} value={reason} onValue={setReason} />
        )}
        <Fault error={error} />
        <button class="primary" disabled={busy}>
          {t('forward.do')}
        </button>
        {task.department_id && <EditFirms {...list} />}
      </form>
    </Modal>
  );
}
