import { useState } from 'preact/hooks';

import { t } from '../../lang/i18n';
import { toast } from '../../state/toasts';
import { Fault } from '../../ui/problem';

interface Props {
  withdraw(): Promise<void>;
  onClose(): void;
}

/** Says what withdrawing a report does, and asks once more. */
export function WithdrawForm({ withdraw, onClose }: Props) {
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      await withdraw();
      toast(t('withdraw.done'));
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <form class="stack" onSubmit={submit} aria-busy={busy}>
      <ul>
        <li>{t('withdraw.hides')}</li>
        <li>{t('withdraw.ends')}</li>
        <li>{t('withdraw.deletes')}</li>
        <li>{t('withdraw.forever')}</li>
      </ul>
      <Fault error={error} />
      <button class="danger">{t('withdraw')}</button>
    </form>
  );
}
