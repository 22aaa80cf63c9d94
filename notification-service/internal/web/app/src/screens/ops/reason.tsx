import { useState } from 'preact/hooks';

import { t } from '../../lang/i18n';
import { useAct } from '../../ui/act';
import { Field } from '../../ui/field';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';

interface Props {
  title: string;
  /** The word of the act, where nothing is discarded. */
  hint?: string;
  onSubmit(reason: string): Promise<unknown>;
  onClose(): void;
}

/** Asks for a reason, for the audit, before something is discarded or operated. */
export function Reason({ title, hint, onSubmit, onClose }: Props) {
  const [reason, setReason] = useState('');
  const { error, submits } = useAct();
  return (
    <Modal title={title} onClose={onClose}>
      <form class="stack" onSubmit={submits(() => onSubmit(reason.trim()).then(onClose))}>
        <p class="quiet">{hint ?? t('discard.hint')}</p>
        <Field label={t('reason')} data-first required maxLength={500} value={reason} onValue={setReason} />
        <Fault error={error} />
        <button class={hint ? 'primary' : 'danger'}>{title}</button>
      </form>
    </Modal>
  );
}
