import { useState } from 'preact/hooks';

import { must, notificationService, type Webhook } from '../../../api/client';
import { t } from '../../../lang/console';
import { Fault } from '../../../ui/problem';
import { usePoll } from '../../../ui/poll';
import { href } from '../../../ui/router';
import { Time } from '../../../ui/time';
import { Acts } from '../acts';
import { EndpointForm } from './form';
import { hostOf, milliseconds, State, successRate, Warned } from './state';
import { Waiting } from '../waiting';

const PAGE = 100;

/** The endpoints that get events, and whether deliveries succeed. */
export function EndpointList() {
  const [pages, setPages] = useState(1);
  const [open, setOpen] = useState(false);
  const found = usePoll(() => readPages(pages), [pages]);
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
      {found.value ? <Fault error={found.error} retry={found.refresh} /> : <Waiting error={found.error} retry={found.refresh} />}
      {found.value?.webhooks.length === 0 && <p class="empty">{t('webhooks.none')}</p>}
      <ul class="rows">
        {found.value?.webhooks.map((webhook) => (
          <Row key={webhook.id} webhook={webhook} />
        ))}
      </ul>
      {found.value?.more && (
        <button type="button" class="wide" onClick={() => setPages(pages + 1)}>
          {t('more')}
        </button>
      )}
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

/** Reads all pages again: what is shown of the first changes, too. */
async function readPages(pages: number) {
  const webhooks: Webhook[] = [];
  let cursor: string | undefined;
  for (let page = 0; page === 0 || (cursor && page < pages); page++) {
    const query = { limit: PAGE, ...(cursor && { cursor }) };
    const found = await must(notificationService.GET('/admin/webhooks', { params: { query } }));
    webhooks.push(...found.items);
    cursor = found.next_cursor;
  }
  return { webhooks, more: cursor !== undefined };
}
