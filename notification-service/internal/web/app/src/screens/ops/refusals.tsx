import { must, reportService, type OutboxRefusal } from '../../api/client';
import { number, t, tn } from '../../lang/console';
import { Copy } from '../../ui/copy';
import { usePoll } from '../../ui/poll';
import { Fault } from '../../ui/problem';
import { href } from '../../ui/router';
import { Time, timeWithSeconds } from '../../ui/time';
import { StoryLink } from './message/message';

const POLL_MS = 5_000;

const read = () => must(reportService.GET('/admin/outbox/refused', { params: { query: { limit: 100 } } }));

/** The messages that the broker refused and that are tried again, each with what waits behind it. Without any, nothing. */
export function Refused() {
  const refused = usePoll(read, [], POLL_MS);
  const messages = refused.value?.messages ?? [];
  if (messages.length === 0) return <Fault error={refused.error} retry={refused.refresh} />;
  return (
    <section class="stack" aria-labelledby="refused">
      <h2 id="refused">{t('outbox.refused')}</h2>
      <Fault error={refused.error} retry={refused.refresh} />
      <p class="quiet">{t('outbox.refused.hint')}</p>
      <ul class="rows">
        {messages.map((refusal) => (
          <Row key={refusal.message.id} refusal={refusal} />
        ))}
      </ul>
    </section>
  );
}

function Row({ refusal: { message, behind, behind_since } }: { refusal: OutboxRefusal }) {
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
          {message.next_attempt_at && (
            <span>
              {t('outbox.next-attempt')}{' '}
              <time dateTime={message.next_attempt_at}>{timeWithSeconds(new Date(message.next_attempt_at))}</time>
            </span>
          )}
        </p>
        <p>
          {behind === 0 ? t('outbox.behind.none') : tn('outbox.behind', behind)}
          {behind_since && (
            <>
              {' '}
              {t('outbox.behind.since')} <Time at={behind_since} full />
            </>
          )}
        </p>
        {message.last_error && <code>{message.last_error}</code>}
      </div>
    </li>
  );
}
