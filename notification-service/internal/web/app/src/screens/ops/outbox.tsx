import { useState } from 'preact/hooks';

import { must, reportService, type OutboxMessage, type OutboxStats } from '../../api/client';
import { number, t } from '../../lang/i18n';
import { Chart } from '../../ui/chart';
import { Fault } from '../../ui/problem';
import { usePoll } from '../../ui/poll';
import { href } from '../../ui/router';
import { Time } from '../../ui/time';
import { Figure } from './figure';
import { readings, type Reading } from './readings';
import { Reason } from './reason';

const readFailed = () => must(reportService.GET('/admin/outbox/messages', { params: { query: { status: 'failed', limit: 100 } } }));

/** What waits to be published, and what could not be. */
export function Outbox({ reading: { outbox } }: { reading: Reading }) {
  const failed = usePoll(readFailed);
  const fault = <Fault error={failed.error} retry={failed.refresh} />;
  // Shown all at once, so that nothing moves while it is being clicked.
  if (!outbox || !failed.value) return fault;
  const { messages } = failed.value;
  return (
    <div class="stack">
      {fault}
      <Backlog stats={outbox} />
      <div class="bar spread">
        <h2>{t('outbox.failed')}</h2>
        <RetryAll messages={messages} onDone={failed.refresh} />
      </div>
      {messages.length === 0 && <p class="empty">{t('outbox.none-failed')}</p>}
      <ul class="rows">
        {messages.map((message) => (
          <Failed key={message.id} message={message} onDone={failed.refresh} />
        ))}
      </ul>
    </div>
  );
}

function Backlog({ stats }: { stats: OutboxStats }) {
  const past = readings.value.map(({ outbox }) => outbox);
  const since = readings.value[0]?.at;
  return (
    <>
      <dl class="figures">
        <Figure label={t('outbox.pending')} value={number(stats.pending)} />
        <Figure label={t('outbox.delayed')} value={number(stats.delayed)} warn={stats.delayed > 0} />
        <Figure label={t('outbox.failed')} value={number(stats.failed)} warn={stats.failed > 0} />
        <Figure label={t('outbox.oldest')} value={`${number(Math.round(stats.oldest_pending_seconds))} s`} />
        <Figure label={t('outbox.replicas')} value={number(stats.replicas)} warn={stats.replicas === 0} />
      </dl>
      <div class="charts">
        <Chart
          label={t('outbox.published')}
          since={since}
          lines={[{ values: past.map((then) => then?.relay.published_per_s) }]}
          unit="/s"
        />
        <Chart
          label={t('outbox.confirm')}
          since={since}
          lines={[
            { name: 'p50', values: past.map((then) => then?.relay.confirm_p50_ms || undefined) },
            { name: 'p99', values: past.map((then) => then?.relay.confirm_p99_ms || undefined) },
          ]}
          unit=" ms"
        />
        <Chart label={t('outbox.pending')} since={since} lines={[{ values: past.map((then) => then?.pending) }]} />
        <Chart label={t('outbox.oldest')} since={since} lines={[{ values: past.map((then) => then?.oldest_pending_seconds) }]} unit=" s" />
      </div>
    </>
  );
}

/** One button for each kind of message that failed more than once. */
function RetryAll({ messages, onDone }: { messages: OutboxMessage[]; onDone(): void }) {
  const [error, setError] = useState<unknown>();
  const kinds = [...Map.groupBy(messages, (message) => message.routing_key)].filter(([, failed]) => failed.length > 1);
  return (
    <div class="bar">
      {kinds.map(([routing_key]) => (
        <button
          key={routing_key}
          type="button"
          onClick={() => must(reportService.POST('/admin/outbox/messages/retry', { body: { routing_key } })).then(onDone, setError)}
        >
          {t('outbox.retry-all', { kind: routing_key })}
        </button>
      ))}
      <Fault error={error} />
    </div>
  );
}

function Failed({ message, onDone }: { message: OutboxMessage; onDone(): void }) {
  const [discarding, setDiscarding] = useState(false);
  const [error, setError] = useState<unknown>();
  const params = { path: { id: message.id } };
  const retry = () => must(reportService.POST('/admin/outbox/messages/{id}/retry', { params })).then(onDone, setError);
  const discard = (reason: string) =>
    must(reportService.DELETE('/admin/outbox/messages/{id}', { params: { ...params, query: { reason } } })).then(onDone);
  return (
    <li>
      <div>
        <strong>{message.routing_key}</strong>
        <p class="meta">
          <a href={href(`reports/${message.report_id}`)}>{t('report')}</a>
          <Time at={message.created_at} />
          <span>{t('attempts', { count: number(message.retry_count) })}</span>
        </p>
        {message.last_error && <code>{message.last_error}</code>}
        <Fault error={error} />
      </div>
      <div class="bar">
        <button type="button" onClick={retry}>
          {t('retry')}
        </button>
        <button type="button" class="danger-quiet" aria-haspopup="dialog" onClick={() => setDiscarding(true)}>
          {t('discard')}
        </button>
      </div>
      {discarding && <Reason title={t('discard')} onSubmit={discard} onClose={() => setDiscarding(false)} />}
    </li>
  );
}
