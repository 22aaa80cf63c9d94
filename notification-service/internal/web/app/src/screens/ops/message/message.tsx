import type { StoryEntry } from '../../../api/client';
import { number, t } from '../../../lang/console';
import { cause, failureClass } from '../../../ui/cause';
import { Copy } from '../../../ui/copy';
import { usePoll } from '../../../ui/poll';
import { Fault } from '../../../ui/problem';
import { href } from '../../../ui/router';
import { clockTime, Time } from '../../../ui/time';
import { TONE } from '../tone';
import { Waiting } from '../waiting';
import { DeliveryState, milliseconds } from '../webhooks/state';
import { readStory } from './story';

/** Leads to everything that happened to a message. */
export function StoryLink({ id }: { id: string }) {
  return <a href={href(`ops/messages/${encodeURIComponent(id)}`)}>{t('story')}</a>;
}

/** Everything that happened to one message, in both services, and what has not happened yet. */
export function MessageStory({ path: [encoded = ''] }: { path: string[] }) {
  const id = decoded(encoded);
  const story = usePoll(() => readStory(id), [id]);
  const told = story.value;
  if (!told) return <Waiting error={story.error} retry={story.refresh} />;
  return (
    <article class="stack">
      <h2 class="wrap">{t('story.of', { kind: told.message?.routing_key ?? t('story.message') })}</h2>
      <p class="meta">
        <Copy text={id} />
        {told.message && <a href={href(`reports/${told.message.report_id}`)}>{t('report')}</a>}
        {told.trace && (
          <a href={href('ops/search', { q: told.trace })}>
            {t('story.trace')} <code title={told.trace}>{told.trace.slice(0, 8)}</code>
          </a>
        )}
      </p>
      {told.errors.map((error, i) => (
        <Fault key={i} error={error} retry={story.refresh} />
      ))}
      <ol class="timeline">
        {told.entries.map((entry, i) => (
          <Entry key={i} entry={entry} endpoint={told.endpoints.get(entry.place)} />
        ))}
      </ol>
      <div role="status">
        <ul class="stack">
          {told.missing.map((each) => (
            <li key={each}>
              {t(`story.missing.${each}`)} {each === 'failed' && told.message?.last_error && <code>{told.message.last_error}</code>}
            </li>
          ))}
        </ul>
      </div>
      <p class="quiet">{t('story.no-readers')}</p>
    </article>
  );
}

/** An address that somebody typed may not be a valid encoding. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The colour of an entry. */
function colour({ kind, state }: StoryEntry): string {
  if (kind === 'dead_lettered' || kind === 'discarded' || kind === 'withdrawn' || kind === 'not_found' || state === 'dead') return TONE.bad;
  if (kind === 'published' || kind === 'handled' || kind === 'resolved' || kind === 'numbered' || state === 'done') return TONE.good;
  return TONE.waiting;
}

function Entry({ entry, endpoint }: { entry: StoryEntry; endpoint: string | undefined }) {
  const facts = [
    entry.attempts && t('attempts', { count: number(entry.attempts) }),
    entry.number && t('story.number', { number: number(entry.number) }),
    entry.status && `HTTP ${entry.status}`,
    entry.class && failureClass(entry.class),
    entry.duration_ms && milliseconds(entry.duration_ms),
  ].filter(Boolean);
  return (
    <li>
      <span class="badge" data-status={colour(entry)}>
        {t(`story.kind.${entry.kind}`)}
      </span>
      <small>
        <Time at={entry.at} full seconds /> · <Place entry={entry} endpoint={endpoint} />
        {facts.length > 0 && ` · ${facts.join(' · ')}`}
        {entry.until && (
          <>
            {' · '}
            {t('delayed.until')} <time dateTime={entry.until}>{clockTime(new Date(entry.until))}</time>
          </>
        )}
      </small>
      {entry.state && <DeliveryState state={entry.state} />}
      {entry.reason && <code>{cause(entry.reason)}</code>}
    </li>
  );
}

/** Where it happened, with the way there if there is one. */
function Place({ entry: { place, kind, dead_letter_id, delivery_id }, endpoint }: { entry: StoryEntry; endpoint: string | undefined }) {
  if (dead_letter_id) return <a href={href(`ops/dead-letters/${dead_letter_id}`)}>{place}</a>;
  if (delivery_id) return <a href={href(`ops/webhooks/${place}/${delivery_id}`)}>{endpoint ?? t('story.webhook')}</a>;
  if (place === 'outbox') return <a href={href('ops/outbox')}>{t('outbox')}</a>;
  return <>{kind === 'numbered' ? t('story.officials') : place}</>;
}
