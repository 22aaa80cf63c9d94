import { useState } from 'preact/hooks';

import { must, notificationService, type Replay } from '../../api/client';
import { number, t, tn } from '../../lang/console';
import { Fault } from '../../ui/problem';
import { usePoll } from '../../ui/poll';
import { Time } from '../../ui/time';

const read = () => must(notificationService.GET('/admin/dlq/replays'));

const ACTIONS: Record<Replay['state'], ('pause' | 'resume' | 'cancel')[]> = {
  running: ['pause', 'cancel'],
  paused: ['resume', 'cancel'],
  stopped: ['resume', 'cancel'],
  cancelled: [],
  done: [],
};

/** A replay that has nothing left to send cannot go on. */
function actionsOf({ state, pending, in_flight }: Replay) {
  return ACTIONS[state].filter((action) => action !== 'resume' || pending + in_flight > 0);
}

/** The latest replays and their progress. */
export function Replays() {
  const replays = usePoll(read);
  return (
    <div class="stack">
      <Fault error={replays.error} retry={replays.refresh} />
      {replays.value?.items.length === 0 && <p class="empty">{t('replays.none')}</p>}
      <ul class="rows">
        {replays.value?.items.map((replay) => (
          <Row key={replay.id} replay={replay} onDone={replays.refresh} />
        ))}
      </ul>
    </div>
  );
}

function Row({ replay, onDone }: { replay: Replay; onDone(): void }) {
  const [error, setError] = useState<unknown>();
  const send = (action: 'pause' | 'resume' | 'cancel') =>
    must(notificationService.POST('/admin/dlq/replays/{id}/{action}', { params: { path: { id: replay.id, action } } })).then(
      onDone,
      setError,
    );
  return (
    <li>
      <div>
        <strong>{tn('replays.of', replay.total)}</strong>
        <progress max={replay.total || 1} value={replay.resolved + replay.failed} aria-label={t('replays.progress')} />
        <p class="meta">
          <span class="state" data-state={replay.state}>
            {t(`replays.state.${replay.state}`)}
          </span>
          <span>{t('replays.resolved', { count: number(replay.resolved) })}</span>
          <span>{t('replays.failed', { count: number(replay.failed) })}</span>
          <span>{t('replays.pending', { count: number(replay.pending + replay.in_flight) })}</span>
          <Time at={replay.created_at} />
        </p>
        {replay.reason && <p class="quiet">{replay.reason}</p>}
        <Fault error={error} />
      </div>
      <div class="bar">
        {actionsOf(replay).map((action) => (
          <button key={action} type="button" onClick={() => send(action)}>
            {t(`replays.${action}`)}
          </button>
        ))}
      </div>
    </li>
  );
}
