import { must, notificationService, type Webhook } from '../../../api/client';
import { t } from '../../../lang/console';
import { useAct } from '../../../ui/act';
import { go } from '../../../ui/router';
import { ShownOnce } from '../shown-once';

/** Shows a signing secret, this once, and offers to try the endpoint out. */
export function Secret({ webhook, secret, onClose }: { webhook: Webhook; secret: string; onClose(): void }) {
  const { error, run } = useAct();
  const test = () =>
    run(async () => {
      const delivery = await must(notificationService.POST('/admin/webhooks/{id}/test', { params: { path: { id: webhook.id } } }));
      onClose();
      go(`ops/webhooks/${webhook.id}/${delivery.id}`);
    });
  return (
    <ShownOnce title={t('webhooks.secret')} hint={t('webhooks.secret-hint')} secret={secret} error={error} onClose={onClose}>
      {webhook.state === 'enabled' && (
        <button type="button" onClick={() => void test()}>
          {t('webhooks.test')}
        </button>
      )}
    </ShownOnce>
  );
}
