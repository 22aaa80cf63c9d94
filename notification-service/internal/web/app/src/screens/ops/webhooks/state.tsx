import type { Delivery, Webhook, WebhookSummary } from '../../../api/client';
import { number, t } from '../../../lang/console';
import { exactTime } from '../../../ui/time';

/** Whether an endpoint gets its events, in colour and in words. */
export function State({ webhook }: { webhook: Webhook }) {
  const state = webhook.state === 'enabled' && webhook.summary.open_until ? 'paused' : webhook.state;
  return (
    <span class="state" data-state={state}>
      {t(`webhooks.state.${state}`)}
      {webhook.state_reason && `: ${t(`webhooks.reason.${webhook.state_reason}`)}`}
    </span>
  );
}

/** From when on an endpoint is disabled that has failed for half of the time already. */
export function Warned({ webhook }: { webhook: Webhook }) {
  if (!webhook.disable_at) return null;
  return <p class="fault">{t('webhooks.disable-at', { time: exactTime(new Date(webhook.disable_at)) })}</p>;
}

export function DeliveryState({ state }: { state: Delivery['state'] }) {
  return (
    <span class="state" data-state={state}>
      {t(`delivery.state.${state}`)}
    </span>
  );
}

/** Where the events go. The rest of an address may be a secret, and is long. */
export function hostOf(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}

/** How many of the deliveries of the last day came to a good end. */
export function successRate({ succeeded, failed }: WebhookSummary): string {
  const all = succeeded + failed;
  if (all === 0) return t('webhooks.nothing-sent');
  // 999 of 1000 are not all of them.
  const rate = Math.floor((succeeded / all) * 1000) / 10;
  return t('webhooks.success', { rate: number(rate), count: number(all) });
}

export function milliseconds(ms: number): string {
  return ms < 10_000 ? `${number(Math.round(ms))} ms` : `${number(Math.round(ms / 100) / 10)} s`;
}
