import { useState } from 'preact/hooks';

import { must, notificationService, type Webhook } from '../../../api/client';
import { t } from '../../../lang/console';
import { Modal } from '../../../ui/modal';
import { Fault } from '../../../ui/problem';
import { go } from '../../../ui/router';

/** Shows a signing secret, this once, and offers to try the endpoint out. */
export function Secret({ webhook, secret, onClose }: { webhook: Webhook; secret: string; onClose(): void }) {
  const [copied, setCopied] = useState(false);
  const [error, setError] = useState<unknown>();
  const copy = () => navigator.clipboard.writeText(secret).then(() => setCopied(true), setError);
  const test = () =>
    must(notificationService.POST('/admin/webhooks/{id}/test', { params: { path: { id: webhook.id } } })).then((delivery) => {
      onClose();
      go(`ops/webhooks/${webhook.id}/${delivery.id}`);
    }, setError);
  return (
    <Modal title={t('webhooks.secret')} onClose={onClose}>
      <div class="stack">
        <p>{t('webhooks.secret-hint')}</p>
        <label class="field">
          <span>{t('webhooks.secret')}</span>
          <input class="code" readOnly value={secret} onFocus={(e) => e.currentTarget.select()} />
        </label>
        <p role="status" class="quiet">
          {copied && t('webhooks.copied')}
        </p>
        <Fault error={error} />
        <div class="bar">
          <button type="button" class="primary" onClick={copy}>
            {t('webhooks.copy')}
          </button>
          {webhook.state === 'enabled' && (
            <button type="button" onClick={test}>
              {t('webhooks.test')}
            </button>
          )}
        </div>
      </div>
    </Modal>
  );
}
