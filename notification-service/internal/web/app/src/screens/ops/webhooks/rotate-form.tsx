import { useState } from 'preact/hooks';

import { must, notificationService, type Webhook } from '../../../api/client';
import { t } from '../../../lang/console';
import { Modal } from '../../../ui/modal';
import { Fault } from '../../../ui/problem';
import { Secret } from './secret';

const HOUR = 3600;
/** For how many hours the old secret may sign beside the new one. */
const HOURS = 24;
const MAX_HOURS = 168;

/** Gives an endpoint a new secret; the old one signs beside it for a while. */
export function RotateForm({ webhook, onClose }: { webhook: Webhook; onClose(): void }) {
  const [hours, setHours] = useState(HOURS);
  const [secret, setSecret] = useState<string>();
  const [error, setError] = useState<unknown>();
  const submit = (event: Event) => {
    event.preventDefault();
    const request = { params: { path: { id: webhook.id } }, body: { keep_old_for_s: Math.round(hours * HOUR) } };
    must(notificationService.POST('/admin/webhooks/{id}/rotate', request)).then((answer) => setSecret(answer.secret), setError);
  };
  if (secret) return <Secret webhook={webhook} secret={secret} onClose={onClose} />;
  return (
    <Modal title={t('webhooks.rotate')} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <p class="quiet">{t('webhooks.rotate-hint')}</p>
        <label class="field">
          <span>{t('webhooks.keep-old')}</span>
          <input type="number" required min={0} max={MAX_HOURS} value={hours} onInput={(e) => setHours(e.currentTarget.valueAsNumber)} />
          <small>{t('webhooks.keep-old-hint')}</small>
        </label>
        <Fault error={error} />
        <button class="primary">{t('webhooks.rotate')}</button>
      </form>
    </Modal>
  );
}
