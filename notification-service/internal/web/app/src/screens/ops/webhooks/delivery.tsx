import { useState } from 'preact/hooks';

import { must, notificationService, type Delivery, type DeliveryAttempt } from '../../../api/client';
import { t } from '../../../lang/console';
import { Icon } from '../../../ui/icons';
import { Fault } from '../../../ui/problem';
import { usePoll } from '../../../ui/poll';
import { href } from '../../../ui/router';
import { Time } from '../../../ui/time';
import { Acts } from '../acts';
import { StoryLink } from '../message/message';
import { DeliveryState, milliseconds } from './state';

/** One delivery: what is sent, each attempt with its answer, and sending it again. */
export function DeliveryDetail({ webhook, id }: { webhook: string; id: number }) {
  const params = { path: { id } };
  const delivery = usePoll(() => must(notificationService.GET('/admin/deliveries/{id}', { params })), [id]);
  const found = delivery.value;
  return (
    <article class="stack">
      <a class="back" href={href(`ops/webhooks/${webhook}`)}>
        <Icon name="back" /> {t('delivery.log')}
      </a>
      <Fault error={delivery.error} retry={delivery.refresh} />
      {found && (
        <>
          <h2 class="wrap">{found.type}</h2>
          <p class="meta" role="status">
            <DeliveryState state={found.state} />
            <Time at={found.created_at} full />
            <StoryLink id={found.message_id} />
            {found.report_id && <a href={href(`reports/${found.report_id}`)}>{t('report')}</a>}
          </p>
          <Acts>
            <Resend delivery={found} onDone={delivery.refresh} />
          </Acts>
          <section class="part">
            <h3>{t('dead.body')}</h3>
            <pre>{indented(found.body)}</pre>
          </section>
          <section class="part">
            <h3>{t('dead.attempts')}</h3>
            {found.attempts?.length === 0 && <p class="quiet">{t('delivery.no-attempt')}</p>}
            <ol class="timeline">
              {found.attempts?.toReversed().map((attempt) => (
                <Attempt key={attempt.number} attempt={attempt} />
              ))}
            </ol>
          </section>
        </>
      )}
    </article>
  );
}

function Resend({ delivery, onDone }: { delivery: Delivery; onDone(): void }) {
  const [error, setError] = useState<unknown>();
  const params = { path: { id: delivery.id } };
  const resend = () =>
    must(notificationService.POST('/admin/deliveries/{id}/resend', { params })).then(() => {
      setError(undefined);
      onDone();
    }, setError);
  return (
    <div class="stack">
      <div class="bar">
        <button type="button" class="primary" onClick={resend}>
          {t(delivery.state === 'waiting' ? 'delivery.send-now' : 'delivery.resend')}
        </button>
        <span class="quiet">{t('delivery.resend-hint')}</span>
      </div>
      <Fault error={error} />
    </div>
  );
}

function Attempt({ attempt }: { attempt: DeliveryAttempt }) {
  const headers = Object.entries(attempt.request_headers ?? {}).map(([name, value]) => `${name}: ${value}`);
  return (
    <li>
      <span class="badge" data-status={attempt.class === '2xx' ? 'resolved' : 'pending'}>
        {attempt.status ?? attempt.class}
      </span>
      <small>
        <Time at={attempt.at} full /> · {milliseconds(attempt.duration_ms)}
      </small>
      {attempt.error && <code>{attempt.error}</code>}
      <details class="exchange">
        <summary>{t('delivery.exchange')}</summary>
        <h4>{t('delivery.request')}</h4>
        <pre>{headers.join('\n')}</pre>
        <h4>{t('delivery.response')}</h4>
        {attempt.response ? <pre>{attempt.response}</pre> : <p class="quiet">{t('delivery.no-response')}</p>}
      </details>
    </li>
  );
}

/** JSON on several lines; what is sent has none of them. */
function indented(body = ''): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
