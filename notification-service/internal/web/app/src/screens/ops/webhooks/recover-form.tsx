import { useState } from 'preact/hooks';

import { must, notificationService, type Webhook } from '../../../api/client';
import { number, t } from '../../../lang/console';
import { useAct } from '../../../ui/act';
import { Field } from '../../../ui/field';
import { Modal } from '../../../ui/modal';
import { Fault } from '../../../ui/problem';

const DAY = 24 * 60 * 60 * 1000;

/** A moment as an input of the type datetime-local has it: local, to the minute. */
export function localTime(date: Date): string {
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** Sends again what an endpoint has missed in a time; a dry run counts it first. */
export function RecoverForm({ webhook, onClose }: { webhook: Webhook; onClose(): void }) {
  const [since, setSince] = useState(localTime(new Date(Date.now() - DAY)));
  const [until, setUntil] = useState(localTime(new Date(Date.now() + 60_000)));
  const [result, setResult] = useState<{ resent: number; created: number; dryRun: boolean }>();
  const { error, submits } = useAct();
  const submit = submits(async () => {
    const dryRun = !result?.dryRun;
    const body = { since: new Date(since).toISOString(), until: new Date(until).toISOString(), dry_run: dryRun };
    const request = { params: { path: { id: webhook.id } }, body };
    setResult({ ...(await must(notificationService.POST('/admin/webhooks/{id}/recover', request))), dryRun });
  });
  // The count does not hold for another time.
  const change = (set: (value: string) => void) => (value: string) => {
    set(value);
    setResult(undefined);
  };
  const nothing = result && result.resent + result.created === 0;
  return (
    <Modal title={t('webhooks.recover')} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <p class="quiet">{t('webhooks.recover-hint')}</p>
        <Field label={t('webhooks.since')} type="datetime-local" required value={since} onValue={change(setSince)} />
        <Field label={t('webhooks.until')} type="datetime-local" required min={since} value={until} onValue={change(setUntil)} />
        {result && (
          <p class="note" role="status">
            {t(result.dryRun ? 'webhooks.would-recover' : 'webhooks.recovered', {
              resent: number(result.resent),
              created: number(result.created),
            })}
          </p>
        )}
        <Fault error={error} />
        {result && !result.dryRun ? (
          <button type="button" class="primary" onClick={onClose}>
            {t('close')}
          </button>
        ) : (
          <button class="primary" disabled={nothing}>
            {t(result ? 'webhooks.recover' : 'replay.dry-run')}
          </button>
        )}
      </form>
    </Modal>
  );
}
