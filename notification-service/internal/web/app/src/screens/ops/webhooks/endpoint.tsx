import { useState } from 'preact/hooks';

import { Failure, must, notificationService, type Webhook } from '../../../api/client';
import { categories } from '../../../state/categories';
import { number, t, tn } from '../../../lang/console';
import { Icon } from '../../../ui/icons';
import { Fault } from '../../../ui/problem';
import { usePoll } from '../../../ui/poll';
import { go, href } from '../../../ui/router';
import { exactTime, Time } from '../../../ui/time';
import { Acts } from '../acts';
import { Figure } from '../figure';
import { DeleteForm, EnableForm } from './decide';
import { EndpointForm } from './form';
import { EndpointPast } from './history';
import { Log } from './log';
import { Waiting } from '../waiting';
import { RecoverForm } from './recover-form';
import { RotateForm } from './rotate-form';
import { hostOf, milliseconds, State, Warned } from './state';

/** One endpoint: how it is, what can be done, and the log of its deliveries. */
export function EndpointDetail({ id }: { id: string }) {
  const params = { path: { id } };
  const webhook = usePoll(() => must(notificationService.GET('/admin/webhooks/{id}', { params })), [id]);
  const gone = webhook.error instanceof Failure && webhook.error.kind === 'not-found';
  const found = gone ? undefined : webhook.value;
  return (
    <article class="stack">
      <a class="back" href={href('ops/webhooks')}>
        <Icon name="back" /> {t('webhooks')}
      </a>
      {gone && <p class="empty">{t('webhooks.deleted')}</p>}
      {!gone && found && <Fault error={webhook.error} retry={webhook.refresh} />}
      {!gone && !found && <Waiting error={webhook.error} retry={webhook.refresh} />}
      {found && (
        <>
          <h2 class="wrap">{found.description || hostOf(found.url)}</h2>
          <Facts webhook={found} />
          <Acts>
            <Actions webhook={found} onDone={webhook.refresh} />
          </Acts>
          <Figures webhook={found} />
          <EndpointPast id={id} />
          <Log id={id} />
        </>
      )}
    </article>
  );
}

function Facts({ webhook }: { webhook: Webhook }) {
  const name = (id: number) => categories.value.find((category) => category.id === id)?.name ?? id;
  return (
    <>
      <p class="meta">
        <State webhook={webhook} />
        <Time at={webhook.state_since} full />
        {webhook.summary.open_until && <span>{t('webhooks.paused')}</span>}
      </p>
      <code>{webhook.url}</code>
      <p class="meta">
        <span>{webhook.event_types.join(', ') || t('webhooks.all-events')}</span>
        <span>{webhook.category_ids.map(name).join(', ') || t('category.all')}</span>
        {webhook.area.length > 0 && <span>{webhook.area.join(', ')}</span>}
        {webhook.scopes.includes('private') && <span>{t('webhooks.private')}</span>}
        <span>{t(`webhooks.order.${webhook.order}`)}</span>
        {webhook.previous_secret_until && (
          <span>
            {t('webhooks.two-secrets')} {exactTime(new Date(webhook.previous_secret_until))}
          </span>
        )}
      </p>
      <Warned webhook={webhook} />
      {webhook.held_dropped ? <p class="fault">{tn('webhooks.dropped', webhook.held_dropped)}</p> : null}
    </>
  );
}

function Figures({ webhook: { summary } }: { webhook: Webhook }) {
  return (
    <dl class="figures">
      <Figure label={t('webhooks.succeeded')} value={number(summary.succeeded)} />
      <Figure label={t('webhooks.failed')} value={number(summary.failed)} warn={summary.failed > 0} />
      <Figure label={t('webhooks.p95')} value={summary.p95_ms === undefined ? '–' : milliseconds(summary.p95_ms)} />
      <Figure label={t('delivery.state.waiting')} value={number(summary.waiting)} />
      <Figure label={t('delivery.state.held')} value={number(summary.held)} warn={summary.held > 0} />
    </dl>
  );
}

function Actions({ webhook, onDone }: { webhook: Webhook; onDone(): void }) {
  const [open, setOpen] = useState<'change' | 'rotate' | 'recover' | 'enable' | 'delete'>();
  const [error, setError] = useState<unknown>();
  const params = { path: { id: webhook.id } };
  const disabled = webhook.state === 'disabled';
  const close = () => {
    setOpen(undefined);
    onDone();
  };
  const test = () =>
    must(notificationService.POST('/admin/webhooks/{id}/test', { params })).then(
      (delivery) => go(`ops/webhooks/${webhook.id}/${delivery.id}`),
      setError,
    );
  const disable = () =>
    must(notificationService.POST('/admin/webhooks/{id}/disable', { params })).then(() => {
      setError(undefined);
      onDone();
    }, setError);
  const asks = (what: NonNullable<typeof open>) => ({
    type: 'button' as const,
    'aria-haspopup': 'dialog' as const,
    onClick: () => setOpen(what),
  });
  return (
    <div class="stack">
      <div class="bar">
        {disabled ? (
          <button class="primary" {...asks('enable')}>
            {t('webhooks.enable')}
          </button>
        ) : (
          <button type="button" class="primary" onClick={test}>
            {t('webhooks.test')}
          </button>
        )}
        <button {...asks('change')}>{t('webhooks.change')}</button>
        <button {...asks('rotate')}>{t('webhooks.rotate')}</button>
        {!disabled && <button {...asks('recover')}>{t('webhooks.recover')}</button>}
        {!disabled && (
          <button type="button" onClick={disable}>
            {t('webhooks.disable')}
          </button>
        )}
        <button {...asks('delete')}>{t('webhooks.delete')}</button>
      </div>
      <Fault error={error} />
      {open === 'change' && <EndpointForm webhook={webhook} onClose={close} />}
      {open === 'rotate' && <RotateForm webhook={webhook} onClose={close} />}
      {open === 'recover' && <RecoverForm webhook={webhook} onClose={close} />}
      {open === 'enable' && <EnableForm webhook={webhook} onClose={close} />}
      {open === 'delete' && <DeleteForm webhook={webhook} onClose={close} />}
    </div>
  );
}
