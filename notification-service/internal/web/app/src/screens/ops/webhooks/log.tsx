import { must, notificationService, type Delivery } from '../../../api/client';
import { number, t } from '../../../lang/console';
import { Options } from '../../../ui/field';
import { href, route, setQuery } from '../../../ui/router';
import { Time } from '../../../ui/time';
import { Rows, usePages } from '../rows';
import { DELIVERY_STATES, EVENT_TYPES, type EventType } from './names';
import { DeliveryState } from './state';

const PAGE = 50;

/** The deliveries to an endpoint, newest first, as the address narrows them. */
export function Log({ id }: { id: string }) {
  const { query } = route.value;
  const state = (query.get('state') ?? '') as Delivery['state'] | '';
  const type = (query.get('type') ?? '') as EventType | '';
  const found = usePages(
    PAGE,
    (page) => {
      const params = { path: { id }, query: { ...page, ...(state && { state }), ...(type && { type }) } };
      return must(notificationService.GET('/admin/webhooks/{id}/deliveries', { params }));
    },
    [id, state, type],
  );
  return (
    <section class="stack" aria-label={t('delivery.log')}>
      <div class="bar spread">
        <h2>{t('delivery.log')}</h2>
        <div class="bar">
          <label>
            <span class="hidden">{t('delivery.state')}</span>
            <select value={state} onChange={(e) => setQuery({ state: e.currentTarget.value })}>
              <option value="">{t('delivery.state.all')}</option>
              <Options of={DELIVERY_STATES.map((each) => [each, t(`delivery.state.${each}`)])} />
            </select>
          </label>
          <label>
            <span class="hidden">{t('delivery.type')}</span>
            <select value={type} onChange={(e) => setQuery({ type: e.currentTarget.value })}>
              <option value="">{t('webhooks.all-events')}</option>
              <Options of={EVENT_TYPES.map((each) => [each, each])} />
            </select>
          </label>
        </div>
      </div>
      <Rows
        found={found}
        none={
          <>
            {t('delivery.none')}{' '}
            {(state || type) && (
              <button type="button" class="link" onClick={() => setQuery({ state: '', type: '' })}>
                {t('filters.clear')}
              </button>
            )}
          </>
        }
      >
        {(delivery) => <Row key={delivery.id} endpoint={id} delivery={delivery} />}
      </Rows>
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
