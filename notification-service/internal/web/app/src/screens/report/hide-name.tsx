import { useState } from 'preact/hooks';

import { t } from '../../lang/i18n';
import { toast } from '../../state/toasts';
import { Fault } from '../../ui/problem';

interface Props {
  hide(): Promise<void>;
  onClose(): void;
}

/** Says what hiding one's name does and what it cannot do, and asks once more. */
export function HideNameForm({ hide, onClose }: Props) {
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      await hide();
      toast(t('hide-name.done'));
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <form class="stack" onSubmit={submit} aria-busy={busy}>
      <ul>
        <li>{t('hide-name.does')}</li>
        <li>{t('hide-name.comments')}</li>
        <li>{t('hide-name.mails')}</li>
        <li>{t('hide-name.cannot')}</li>
        <li>{t('hide-name.forever')}</li>
      </ul>
      <Fault error={error} />
      <button class="primary">{t('hide-name')}</button>
    </form>
  );
}
