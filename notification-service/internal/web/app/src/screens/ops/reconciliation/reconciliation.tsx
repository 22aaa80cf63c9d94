import { useState } from 'preact/hooks';

import { number, t, tn, type Word } from '../../../lang/console';
import { Copy } from '../../../ui/copy';
import { usePoll } from '../../../ui/poll';
import { Fault } from '../../../ui/problem';
import { clockTime, Time } from '../../../ui/time';
import { Acts } from '../acts';
import { Figure } from '../figure';
import { StoryLink } from '../message/message';
import { Reason } from '../reason';
import { ReportLink } from '../report-link';
import { TONE } from '../tone';
import { Waiting } from '../waiting';
import { close, closeAll, readFound, republish, republishAll, type Group, type Missing, type Outcome } from './missing';

/** An act of an operator that asks for a reason. */
interface Act {
  title: Word;
  hint: Word;
  run(reason: string): Promise<Outcome>;
}

const republishing = (run: Act['run']): Act => ({ title: 'republish', hint: 'republish.hint', run });
const closing = (run: Act['run']): Act => ({ title: 'loss.close', hint: 'loss.close.hint', run });

/** A group that has had nothing to compare for so long is late. */
const LATE_SECONDS = 300;

const needsHand = ({ missing, unknown, gap, late_seconds }: Group) => missing + unknown + gap > 0 || late_seconds > LATE_SECONDS;

/** Which messages groups of consumers have not found of those published, and then the groups that have found all. */
export function Reconciliation() {
  const found = usePoll(readFound);
  const [act, setAct] = useState<Act>();
  const [outcome, setOutcome] = useState<Outcome>();
  if (!found.value) return <Waiting error={found.error} retry={found.refresh} />;
  const { groups, messages, more, errors } = found.value;
  const good = groups.filter((group) => !needsHand(group));
  const summary = (group: Group) => (
    <Summary
      key={group.group}
      group={group}
      onRepublish={() => setAct(republishing((reason) => republishAll(group, reason)))}
      onClose={() => setAct(closing((reason) => closeAll(group, reason)))}
    />
  );
  return (
    <section class="stack" aria-labelledby="reconciliation">
      <h2 id="reconciliation">{t('reconciliation')}</h2>
      <p class="quiet">{t('reconciliation.hint')}</p>
      {[found.error, ...errors].map((error, i) => (
        <Fault key={i} error={error} retry={found.refresh} />
      ))}
      <p role="status">{outcome && told(outcome)}</p>
      {messages.length === 0 && <p class="empty">{t('reconciliation.none')}</p>}
      {messages.length > 0 && <h3>{t('reconciliation.messages')}</h3>}
      <ul class="rows">
        {messages.map((message) => (
          <Row
            key={`${message.group} ${message.published_until} ${message.message_id}`}
            message={message}
            onRepublish={() => setAct(republishing((reason) => republish([message.message_id], reason)))}
            onClose={() => setAct(closing((reason) => close(message, [message.message_id], reason)))}
          />
        ))}
      </ul>
      {more && <p class="quiet">{t('reconciliation.more')}</p>}
      {groups.filter(needsHand).map(summary)}
      <details class="parts">
        <summary>{tn('reconciliation.good', good.length)}</summary>
        <div class="stack">{good.map(summary)}</div>
      </details>
      {act && (
        <Reason
          title={t(act.title)}
          hint={t(act.hint)}
          onSubmit={(reason) => act.run(reason).then(setOutcome)}
          onClose={() => {
            setAct(undefined);
            found.refresh();
          }}
        />
      )}
    </section>
  );
}

interface Acting {
  onRepublish(): void;
  onClose(): void;
}

function Summary({ group, onRepublish, onClose }: Acting & { group: Group }) {
  const counts: [Word, number, boolean][] = [
    ['reconciliation.missing', group.missing, group.missing > 0],
    ['reconciliation.unknown', group.unknown, group.unknown > 0],
    ['reconciliation.awaited', group.awaited, false],
    ['reconciliation.gap', group.gap, group.gap > 0],
  ];
  return (
    <section class="stack" aria-labelledby={`group-${group.group}`}>
      <div class="bar spread">
        <h3 id={`group-${group.group}`}>{group.group}</h3>
        {group.missing + group.unknown > 0 && (
          <Acts>
            <button type="button" aria-haspopup="dialog" onClick={onRepublish}>
              {t('republish.all', { group: group.group })}
            </button>
            <button type="button" aria-haspopup="dialog" onClick={onClose}>
              {t('loss.close.all', { group: group.group })}
            </button>
          </Acts>
        )}
      </div>
      <dl class="figures">
        {counts.map(([name, count, warn]) => (
          <Figure key={name} label={t(name)} value={number(count)} warn={warn} />
        ))}
        <Figure
          label={t('reconciliation.until')}
          value={group.compared_until ? clockTime(new Date(group.compared_until)) : '–'}
          warn={group.late_seconds > LATE_SECONDS}
        />
      </dl>
    </section>
  );
}

const COLOURS = { waiting: TONE.waiting, missing: TONE.bad, unknown: TONE.moving };

function Row({ message, onRepublish, onClose }: Acting & { message: Missing }) {
  return (
    <li>
      <div>
        <strong>{message.routing_key ?? t('story.message')}</strong>{' '}
        <span class="badge" data-status={COLOURS[message.state]}>
          {t(`reconciliation.state.${message.state}`)}
        </span>
        <p class="meta">
          <span>{message.group}</span>
          <Copy text={message.message_id} />
          <StoryLink id={message.message_id} />
          <ReportLink letter={{ body: message }} />
          <Time at={message.published_until} />
        </p>
      </div>
      <div class="bar">
        <Acts>
          <button type="button" aria-haspopup="dialog" onClick={onRepublish}>
            {t('republish')}
          </button>
          {message.state !== 'waiting' && (
            <button type="button" aria-haspopup="dialog" onClick={onClose}>
              {t('loss.close')}
            </button>
          )}
        </Acts>
      </div>
    </li>
  );
}

/** The outcome of the messages, in words. */
function told({ republished, unpublished, gone, closed }: Outcome): string {
  if (closed > 0) return t('loss.closed', { count: number(closed) });
  return [
    t('republish.done', { count: number(republished) }),
    unpublished > 0 && t('republish.unpublished', { count: number(unpublished) }),
    gone > 0 && t('republish.gone', { count: number(gone) }),
  ]
    .filter(Boolean)
    .join(' ');
}
