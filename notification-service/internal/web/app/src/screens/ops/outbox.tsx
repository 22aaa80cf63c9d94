import { useState } from 'preact/hooks';

import { must, reportService, type OutboxMessage, type OutboxStats } from '../../api/client';
import { number, t, type Word } from '../../lang/console';
import { Chart, ChooseScale } from '../../ui/chart';
import { Copy } from '../../ui/copy';
import { groupBy } from '../../ui/group';
import { Fault } from '../../ui/problem';
import { usePoll } from '../../ui/poll';
import { href } from '../../ui/router';
import { Time, timeWithSeconds } from '../../ui/time';
import { Acts } from './acts';
import { Figure } from './figure';
import { StoryLink } from './message/message';
import { ChooseRange, useOutboxPast } from './past';
import { Reason } from './reason';
import { Refused } from './refusals';
import { Waiting } from './waiting';

const readStats = () => must(reportService.GET('/admin/outbox/stats'));
const readFailed = () => must(reportService.GET('/admin/outbox/messages', { params: { query: { status: 'failed', limit: 100 } } }));

/** The messages that wait to be published, and those that could not be. */
export function Outbox() {
  const stats = usePoll(readStats);
  const failed = usePoll(readFailed);
  const error = stats.error ?? failed.error;
  // Shown all at once, so that nothing moves while it is being clicked.
  if (!stats.value || !failed.value) return <Waiting error={error} retry={failed.refresh} />;
  const { messages } = failed.value;
  return (
    <div class="stack">
      <Fault error={error} retry={failed.refresh} />
      <Backlog stats={stats.value} />
      <Relay stats={stats.value} />
      <Refused />
      <div class="bar spread">
        <h2>{t('outbox.failed')}</h2>
        <Acts>
          <RetryAll messages={messages} onDone={failed.refresh} />
        </Acts>
      </div>
      {messages.length === 0 && <p class="empty">{t('outbox.none-failed')}</p>}
      {messages.length > 0 && <p class="quiet">{t('outbox.failed.hint')}</p>}
      <ul class="rows">
        {messages.map((message) => (
          <Failed key={message.id} message={message} onDone={failed.refresh} />
        ))}
      </ul>
    </div>
  );
}

function Backlog({ stats }: { stats: OutboxStats }) {
  const { value: past, error, refresh } = useOutboxPast();
  return (
    <>
      <dl class="figures">
        <Figure label={t('outbox.pending')} value={number(stats.pending)} />
        <Figure label={t('outbox.delayed')} value={number(stats.delayed)} warn={stats.delayed > 0} />
        <Figure label={t('outbox.failed')} value={number(stats.failed)} warn={stats.failed > 0} />
        <Figure label={t('outbox.oldest')} value={`${number(Math.round(stats.oldest_pending_seconds))} s`} />
        <Figure label={t('outbox.replicas')} value={number(stats.replicas)} warn={stats.replicas === 0} />
      </dl>
      <Fault error={error} retry={refresh} />
      {past && (
        <>
          <div class="bar">
            <ChooseRange />
            <ChooseScale />
          </div>
          <div class="charts">
            <Chart label={t('outbox.published')} times={past} lines={[{ values: past.of('published_per_s') }]} unit="/s" />
            <Chart
              label={t('outbox.confirm')}
              times={past}
              lines={[
                { name: 'p50', values: past.of('confirm_p50_ms') },
                { name: 'p99', values: past.of('confirm_p99_ms') },
              ]}
              unit=" ms"
            />
            <Chart label={t('outbox.pending')} times={past} lines={[{ values: past.of('pending') }]} />
            <Chart label={t('outbox.oldest')} times={past} lines={[{ values: past.of('oldest_pending_seconds') }]} unit=" s" />
          </div>
        </>
      )}
    </>
  );
}

/** The state of the relay that answered, and the owners of the outbox's shards with the ends of their leases. */
function Relay({ stats: { relay, shards } }: { stats: OutboxStats }) {
  const states: [Word, string | undefined][] = [
    ['relay.id', relay.id.slice(0, 8)],
    ['relay.connection', relay.connected ? t('relay.connected') : (relay.last_error ?? t('relay.away'))],
    ['relay.shards', number(relay.shards)],
    ['relay.in-flight', t('relay.of-window', { count: number(relay.in_flight), window: number(relay.window) })],
    ['relay.blocked', relay.blocked ?? t('relay.seconds', { seconds: number(Math.round(relay.blocked_seconds)) })],
    ['relay.refused', number(relay.returned + relay.nacked)],
    ['relay.connects', number(relay.connects)],
  ];
  return (
    <details class="panel">
      <summary>{t('relay')}</summary>
      <dl class="states">
        {states.map(([name, value]) => (
          <div key={name}>
            <dt>{t(name)}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <table class="leases">
        <caption>{t('relay.leases')}</caption>
        <thead>
          <tr>
            {(['relay.shard', 'relay.owner', 'relay.until', 'relay.epoch', 'outbox.pending', 'outbox.failed'] as const).map((name) => (
              <th key={name} scope="col">
                {t(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shards.map((shard) => (
            <tr key={shard.shard}>
              <th scope="row">{number(shard.shard)}</th>
              <td>{shard.owner ? <code title={shard.owner}>{shard.owner.slice(0, 8)}</code> : t('relay.free')}</td>
              <td>{shard.lease_until && <time dateTime={shard.lease_until}>{timeWithSeconds(new Date(shard.lease_until))}</time>}</td>
              <td>{number(shard.epoch)}</td>
              <td>{number(shard.pending)}</td>
              <td>{number(shard.failed)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

/** One button for each kind of message that failed more than once. */
function RetryAll({ messages, onDone }: { messages: OutboxMessage[]; onDone(): void }) {
  const [error, setError] = useState<unknown>();
  const kinds = [...groupBy(messages, (message) => message.routing_key)].filter(([, failed]) => failed.length > 1);
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
          <Copy text={message.id} />
          <StoryLink id={message.id} />
          <a href={href(`reports/${message.report_id}`)}>{t('report')}</a>
          <Time at={message.created_at} />
          <span>{t('attempts', { count: number(message.retry_count) })}</span>
        </p>
        {message.last_error && <code>{message.last_error}</code>}
        <Fault error={error} />
      </div>
      <Acts>
        <div class="bar">
          <button type="button" onClick={retry}>
            {t('retry')}
          </button>
          <button type="button" class="danger-quiet" aria-haspopup="dialog" onClick={() => setDiscarding(true)}>
            {t('discard')}
          </button>
        </div>
      </Acts>
      {discarding && <Reason title={t('discard')} onSubmit={discard} onClose={() => setDiscarding(false)} />}
    </li>
  );
}
