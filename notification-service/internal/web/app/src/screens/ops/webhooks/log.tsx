import { useState } from 'preact/hooks';

import { must, notificationService, type Delivery } from '../../../api/client';
import { number, t } from '../../../lang/console';
import { Fault } from '../../../ui/problem';
import { usePoll } from '../../../ui/poll';
import { href, route, setQuery } from '../../../ui/router';
import { Time } from '../../../ui/time';
import { DELIVERY_STATES, EVENT_TYPES, type EventType } from './names';
import { DeliveryState } from './state';
import { Waiting } from '../waiting';

const PAGE = 50;

/** The deliveries to an endpoint, newest first, as the address narrows them. */
export function Log({ id }: { id: string }) {
  const [pages, setPages] = useState(1);
  const { query } = route.value;
  const state = (query.get('state') ?? '') as Delivery['state'] | '';
  const type = (query.get('type') ?? '') as EventType | '';
  const found = usePoll(() => readPages(id, state, type, pages), [id, state, type, pages]);
  return (
    <section class="stack" aria-label={t('delivery.log')}>
      <div class="bar spread">
        <h2>{t('delivery.log')}</h2>
        <div class="bar">
          <label>
            <span class="hidden">{t('delivery.state')}</span>
            <select value={state} onChange={(e) => setQuery({ state: e.currentTarget.value })}>
              <option value="">{t('delivery.state.all')}</option>
              {DELIVERY_STATES.map((each) => (
                <option key={each} value={each}>
                  {t(`delivery.state.${each}`)}
                </option>
              ))}
            </select>
          </label>
          <label>
            <span class="hidden">{t('delivery.type')}</span>
            <select value={type} onChange={(e) => setQuery({ type: e.currentTarget.value })}>
              <option value="">{t('webhooks.all-events')}</option>
              {EVENT_TYPES.map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          </label>
        </div>
      </div>
      {found.value ? <Fault error={found.error} retry={found.refresh} /> : <Waiting error={found.error} retry={found.refresh} />}
      {found.value?.deliveries.length === 0 && (
        <p class="empty">
          {t('delivery.none')}{' '}
          {(state || type) && (
            <button type="button" class="link" onClick={() => setQuery({ state: '', type: '' })}>
              {t('filters.clear')}
            </button>
          )}
        </p>
      )}
      <ul class="rows">
        {found.value?.deliveries.map((delivery) => (
          <Row key={delivery.id} endpoint={id} delivery={delivery} />
        ))}
      </ul>
      {found.value?.more && (
        <button type="button" class="wide" onClick={() => setPages(pages + 1)}>
          {t('more')}
        </button>
      )}
    </section>
  );
}

function Row({ endpoint, delivery }: { endpoint: string; delivery: Delivery }) {
  return (
    <li>
      <div>
        <a href={href(`ops/webhooks/${endpoint}/${delivery.id}`)}>{delivery.type}</a>
        <p class="meta">
          <DeliveryState state={delivery.state} />
          {delivery.last_class && <span>{delivery.last_status ?? delivery.last_class}</span>}
          {delivery.attempt_count > 1 && <span>{t('attempts', { count: number(delivery.attempt_count) })}</span>}
          <Time at={delivery.created_at} />
        </p>
      </div>
    </li>
  );
}

async function readPages(id: string, state: Delivery['state'] | '', type: EventType | '', pages: number) {
  const deliveries: Delivery[] = [];
  let cursor: string | undefined;
  for (let page = 0; page === 0 || (cursor && page < pages); page++) {
    const query = { limit: PAGE, ...(state && { state }), ...(type && { type }), ...(cursor && { cursor }) };
    const params = { path: { id }, query };
    const found = await must(notificationService.GET('/admin/webhooks/{id}/deliveries', { params }));
    deliveries.push(...found.items);
    cursor = found.next_cursor;
  }
  return { deliveries, more: cursor !== undefined };
}
