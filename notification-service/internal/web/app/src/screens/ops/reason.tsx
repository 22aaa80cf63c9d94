import { useState } from 'preact/hooks';

import { t } from '../../lang/i18n';
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
  const [error, setError] = useState<unknown>();
  const submit = (event: Event) => {
    event.preventDefault();
    onSubmit(reason.trim()).then(onClose, setError);
  };
  return (
    <Modal title={title} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <p class="quiet">{hint ?? t('discard.hint')}</p>
        <label class="field">
          <span>{t('reason')}</span>
          <input data-first required maxLength={500} pattern=".*\S.*" value={reason} onInput={(e) => setReason(e.currentTarget.value)} />
        </label>
        <Fault error={error} />
        <button class={hint ? 'primary' : 'danger'}>{title}</button>
      </form>
    </Modal>
  );
}
