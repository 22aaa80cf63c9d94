import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { t, tn, type Word } from '../../lang/console';
import { cause } from '../../ui/cause';
import { Fault } from '../../ui/problem';
import { go, href, route } from '../../ui/router';
import { Time } from '../../ui/time';
import { find, questionOf, type Found, type Results } from './find';
import { StoryLink } from './message/message';
import { Waiting } from './waiting';

/** The console's one search field: it leads to what is found. */
export function SearchField() {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const entered = (new FormData(event.currentTarget as HTMLFormElement).get('q') as string).trim();
    if (entered) go('ops/search', { q: entered });
  };
  return (
    <form class="bar search" role="search" aria-label={t('search.field')} onSubmit={submit}>
      <label class="field grows">
        <span class="hidden">{t('search.field')}</span>
        <input type="search" name="q" maxLength={200} placeholder={t('search.field')} defaultValue={route.value.query.get('q') ?? ''} />
      </label>
      <button>{t('search.button')}</button>
    </form>
  );
}

/** The results, by place. */
export function SearchResults() {
  const entered = route.value.query.get('q') ?? '';
  const question = questionOf(entered);
  const [results, setResults] = useState<Results>();
  useEffect(() => {
    let stale = false;
    setResults(undefined);
    void find(question).then((found) => !stale && setResults(found));
    return () => void (stale = true);
  }, [entered]);

  if (question.kind === 'address') {
    return (
      <section class="stack" aria-labelledby="found">
        <h2 id="found">{t('search.host', { host: question.host })}</h2>
        <p>{t('search.address')}</p>
        <p>
          <a href={href('ops/email')}>{t('search.address-go')}</a>
        </p>
      </section>
    );
  }
  if (!results) return <Waiting retry={() => {}} />;
  const { report, outbox, dead, delayed, webhooks } = results;
  const places: Found<unknown>[] = [outbox, dead, delayed, webhooks];
  const count = places.reduce((sum, { items }) => sum + items.length, 0);
  return (
    <section class="stack" aria-labelledby="found">
      <h2 id="found">
        <span role="status">{tn('search.found', count)}</span>
      </h2>
      {report && (
        <p>
          {t('report')}: <a href={href(`reports/${report.id}`)}>{report.title}</a>
        </p>
      )}
      {count === 0 && places.every(({ error }) => !error) && <p class="empty">{t('search.nothing')}</p>}
      <Place name="outbox" found={outbox}>
        {(message) => (
          <li key={message.id}>
            <div>
              <a href={href('ops/outbox')}>{message.routing_key}</a>
              <p class="meta">
                <span class="state" data-state={message.status === 'failed' ? 'dead' : message.status === 'pending' ? 'waiting' : 'done'}>
                  {t(`search.outbox.${message.status}`)}
                </span>
                <code>{message.id}</code>
                <StoryLink id={message.id} />
                <Time at={message.published_at ?? message.created_at} full seconds />
              </p>
              {message.last_error && <code>{message.last_error}</code>}
            </div>
          </li>
        )}
      </Place>
      <Place name="dead" found={dead}>
        {(letter) => (
          <li key={letter.id}>
            <div>
              <a href={href(`ops/dead-letters/${letter.id}`)}>{cause(letter.error)}</a>
              <p class="meta">
                <span class="state" data-state={letter.state}>
                  {t(`dead.state.${letter.state}`)}
                </span>
                <span>{letter.queue}</span>
                <code>{letter.message_id}</code>
                <StoryLink id={letter.message_id} />
                <Time at={letter.failed_at} full seconds />
              </p>
            </div>
          </li>
        )}
      </Place>
      <Place name="delayed" found={delayed}>
        {(message) => (
          <li key={`${message.queue} ${message.message_id}`}>
            <div>
              <a href={href('ops/queues')}>{message.queue}</a>
              <p class="meta">
                <code>{message.message_id}</code>
                <StoryLink id={message.message_id} />
                <span>
                  {t('delayed.until')} <Time at={message.due_at} full seconds />
                </span>
              </p>
            </div>
          </li>
        )}
      </Place>
      <Place name="webhooks" found={webhooks}>
        {(delivery) => (
          <li key={delivery.id}>
            <div>
              <a href={href(`ops/webhooks/${delivery.webhook_id}/${delivery.id}`)}>{delivery.type}</a>
              <p class="meta">
                <span class="state" data-state={delivery.state}>
                  {t(`delivery.state.${delivery.state}`)}
                </span>
                <code>{delivery.message_id}</code>
                <StoryLink id={delivery.message_id} />
                <Time at={delivery.created_at} full seconds />
              </p>
            </div>
          </li>
        )}
      </Place>
      <p class="quiet">{t('search.no-mails')}</p>
    </section>
  );
}

interface PlaceProps<T> {
  name: Word;
  found: Found<T>;
  children: (item: T) => ComponentChildren;
}

/** The rows of a place that has some, or could not be asked. */
function Place<T>({ name, found: { items, error }, children }: PlaceProps<T>) {
  if (items.length === 0 && !error) return null;
  return (
    <section class="stack" aria-label={t(name)}>
      <h3>{t(name)}</h3>
      <Fault error={error} />
      <ul class="rows">{items.map(children)}</ul>
    </section>
  );
}
