import { useState } from 'preact/hooks';

import { must, notificationService, type Webhook } from '../../../api/client';
import { t, tn } from '../../../lang/console';
import { useAct } from '../../../ui/act';
import { Final } from '../../../ui/final-form';
import { Modal } from '../../../ui/modal';
import { Fault } from '../../../ui/problem';
import { go } from '../../../ui/router';

interface Props {
  webhook: Webhook;
  onClose(): void;
}

/** Lets an endpoint have its events again; asks what becomes of those that were held. */
export function EnableForm({ webhook, onClose }: Props) {
  const [held, setHeld] = useState<'send' | 'cancel'>('send');
  const { error, submits } = useAct();
  const request = { params: { path: { id: webhook.id } }, body: { held } };
  const submit = submits(() => must(notificationService.POST('/admin/webhooks/{id}/enable', request)).then(onClose));
  return (
    <Modal title={t('webhooks.enable')} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <fieldset class="choices">
          <legend>{tn('webhooks.held', webhook.summary.held)}</legend>
          {(['send', 'cancel'] as const).map((choice) => (
            <label key={choice} class="chip">
              <input type="radio" name="held" checked={held === choice} onChange={() => setHeld(choice)} />
              <span>{t(`webhooks.held.${choice}`)}</span>
            </label>
          ))}
        </fieldset>
        <Fault error={error} />
        <button class="primary">{t('webhooks.enable')}</button>
      </form>
    </Modal>
  );
}

/** Asks before an endpoint is removed. */
export function DeleteForm({ webhook, onClose }: Props) {
  const params = { path: { id: webhook.id }, header: { 'If-Match': `"${webhook.version}"` } };
  return (
    <Final
      title={t('webhooks.delete')}
      points={[tn('webhooks.delete-hint', webhook.summary.waiting + webhook.summary.held)]}
      act={() => must(notificationService.DELETE('/admin/webhooks/{id}', { params })).then(() => go('ops/webhooks'))}
      onClose={onClose}
    />
  );
}
