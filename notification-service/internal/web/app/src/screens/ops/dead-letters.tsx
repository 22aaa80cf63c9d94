import { useState } from 'preact/hooks';

import { must, notificationService, type DeadLetterGroup } from '../../api/client';
import { number, t, tn } from '../../lang/console';
import { cause, failureClass } from '../../ui/cause';
import { Fault } from '../../ui/problem';
import { usePoll } from '../../ui/poll';
import { href, route } from '../../ui/router';
import { Time } from '../../ui/time';
import { Acts } from './acts';
import { DeadLetterDetail } from './dead-letter';
import { DeadLetterList, Search } from './dead-letter-list';
import { Figure } from './figure';
import { NoteForm, NoteText } from './note';
import { Reason } from './reason';
import { ReplayForm } from './replay-form';
import { selectionOf } from './selection';
import { Waiting } from './waiting';

const readGroups = () => must(notificationService.GET('/admin/dlq/groups'));
const readStats = () => must(notificationService.GET('/admin/dlq/stats'));

/** Dead letters: by cause first, then one by one. */
export function DeadLetters({ path: [id] }: { path: string[] }) {
  if (id) return <DeadLetterDetail id={Number(id)} key={id} />;
  if (route.value.query.size > 0) return <DeadLetterList key={route.value.query.toString()} />;
  return <Groups />;
}

function Groups() {
  const groups = usePoll(readGroups);
  const stats = usePoll(readStats);
  const fault = <Fault error={groups.error ?? stats.error} retry={groups.refresh} />;
  // Shown all at once, so that nothing moves while it is being clicked.
  const queues = stats.value?.items;
  if (!queues || !groups.value) return <Waiting error={groups.error ?? stats.error} retry={groups.refresh} />;
  const sum = (of: 'open' | 'replaying' | 'resolved' | 'discarded') => queues.reduce((total, queue) => total + queue[of], 0);
  return (
    <div class="stack">
      {fault}
      <dl class="figures">
        <Figure label={t('dead.state.open')} value={number(sum('open'))} warn={sum('open') > 0} />
        <Figure label={t('dead.state.replaying')} value={number(sum('replaying'))} />
        <Figure label={t('dead.state.resolved')} value={number(sum('resolved'))} />
        <Figure label={t('dead.state.discarded')} value={number(sum('discarded'))} />
      </dl>
      <div class="bar spread">
        <h2>{t('dead.groups')}</h2>
        <span class="bar">
          <a href={href('ops/dead-letters', { state: 'all' })}>{t('dead.all')}</a>
          <a href="/admin/dlq/export" download="dead-letters.ndjson">
            {t('dead.export')}
          </a>
        </span>
      </div>
      <Search query={{}} />
      {groups.value.items.length === 0 && (
        <p class="empty">
          {t('dead.none')} <a href={href('ops/dead-letters', { state: 'all' })}>{t('dead.all')}</a>
        </p>
      )}
      <ul class="rows">
        {groups.value.items.map((group) => (
          <Group key={`${group.queue} ${group.error_class} ${group.error_group}`} group={group} onDone={groups.refresh} />
        ))}
      </ul>
    </div>
  );
}

const MINUTE_MS = 60_000;

/** How fast a group grew from its first to its last; of messages that came at once there is nothing to say. */
export function rateOf({ open, oldest, newest }: Pick<DeadLetterGroup, 'open' | 'oldest' | 'newest'>): string | undefined {
  const minutes = (Date.parse(newest) - Date.parse(oldest)) / MINUTE_MS;
  if (open < 2 || minutes < 1) return undefined;
  const perMinute = (open - 1) / minutes;
  const [rate, unit] = perMinute >= 1 ? [perMinute, 'minute' as const] : [perMinute * 60, 'hour' as const];
  if (rate < 0.1) return undefined;
  return t(`dead.rate.${unit}`, { count: number(Math.round(rate * 10) / 10) });
}

function Group({ group, onDone }: { group: DeadLetterGroup; onDone(): void }) {
  const [open, setOpen] = useState<'replay' | 'discard' | 'note'>();
  const close = () => {
    setOpen(undefined);
    onDone();
  };
  const { queue, error_class, error_group } = group;
  const selection = selectionOf({ queue, error_class, error_group });
  const discard = (reason: string) => must(notificationService.POST('/admin/dlq/discard', { body: { selection, reason } }));
  return (
    <li>
      <div>
        <a href={href('ops/dead-letters', { state: 'open', queue, error_class, error_group })}>{cause(error_group)}</a>
        <p class="meta">
          <strong>{tn('dead.count', group.open)}</strong>
          <span>{queue}</span>
          <span>{failureClass(error_class)}</span>
        </p>
        <p class="meta">
          <span>
            {t('dead.first')} <Time at={group.oldest} full />
          </span>
          <span>
            {t('dead.last')} <Time at={group.newest} full />
          </span>
          {rateOf(group) && <span>{rateOf(group)}</span>}
        </p>
        {group.note && <NoteText note={group.note} />}
      </div>
      <Acts>
        <div class="bar">
          <button type="button" aria-haspopup="dialog" onClick={() => setOpen('note')}>
            {t(group.note ? 'dead.note.edit' : 'dead.note.add')}
          </button>
          <button type="button" aria-haspopup="dialog" onClick={() => setOpen('replay')}>
            {t('replay')}
          </button>
          <button type="button" class="danger-quiet" aria-haspopup="dialog" onClick={() => setOpen('discard')}>
            {t('discard')}
          </button>
        </div>
      </Acts>
      {open === 'note' && <NoteForm cause={group} note={group.note} onClose={close} />}
      {open === 'replay' && <ReplayForm selection={selection} count={group.open} onClose={close} />}
      {open === 'discard' && <Reason title={tn('dead.discard', group.open)} onSubmit={discard} onClose={close} />}
    </li>
  );
}
