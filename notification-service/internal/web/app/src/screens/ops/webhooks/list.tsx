import { useState } from 'preact/hooks';

import { must, notificationService, type Webhook } from '../../../api/client';
import { t } from '../../../lang/console';
import { href } from '../../../ui/router';
import { Time } from '../../../ui/time';
import { Acts } from '../acts';
import { Rows, usePages } from '../rows';
import { EndpointForm } from './form';
import { hostOf, milliseconds, State, successRate, Warned } from './state';

const PAGE = 100;

/** The endpoints that get events, and whether deliveries succeed. */
export function EndpointList() {
  const [open, setOpen] = useState(false);
  const found = usePages(PAGE, (query) => must(notificationService.GET('/admin/webhooks', { params: { query } })));
  return (
    <div class="stack">
      <div class="bar spread">
        <h2>{t('webhooks.endpoints')}</h2>
        <Acts>
          <button type="button" class="primary" aria-haspopup="dialog" onClick={() => setOpen(true)}>
            {t('webhooks.add')}
          </button>
        </Acts>
      </div>
      <Rows found={found} none={t('webhooks.none')}>
        {(webhook) => <Row key={webhook.id} webhook={webhook} />}
      </Rows>
      {open && <EndpointForm onClose={() => setOpen(false)} />}
    </div>
  );
}

function Row({ webhook }: { webhook: Webhook }) {
  const { summary } = webhook;
  return (
    <li>
      <div>
        <a href={href(`ops/webhooks/${webhook.id}`)}>{webhook.description || hostOf(webhook.url)}</a>
        <p class="meta">
          <State webhook={webhook} />
          <span>{hostOf(webhook.url)}</span>
          <span>{successRate(summary)}</span>
          {summary.p95_ms !== undefined && <span>{t('webhooks.p95-is', { time: milliseconds(summary.p95_ms) })}</span>}
          {summary.oldest_waiting_at && (
            <span>
              {t('webhooks.oldest')} <Time at={summary.oldest_waiting_at} />
            </span>
          )}
        </p>
        <Warned webhook={webhook} />
      </div>
    </li>
  );
}
