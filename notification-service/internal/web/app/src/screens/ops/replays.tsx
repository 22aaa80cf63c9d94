import { must, notificationService, type Replay } from '../../api/client';
import { number, t, tn } from '../../lang/console';
import { session } from '../../state/session';
import { useAct } from '../../ui/act';
import { cause, stopReason } from '../../ui/cause';
import { Fault } from '../../ui/problem';
import { usePoll } from '../../ui/poll';
import { href } from '../../ui/router';
import { Time } from '../../ui/time';
import { Acts } from './acts';
import { Rows } from './rows';

const read = () => must(notificationService.GET('/admin/dlq/replays'));

/** The acts on a replay; there are none on one that has ended. */
const ACTIONS: Record<Replay['state'], ('pause' | 'resume' | 'cancel')[]> = {
  running: ['pause', 'cancel'],
  paused: ['resume', 'cancel'],
  stopped: [],
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
  const none = (
    <>
      {t('replays.none')} <a href={href('ops/dead-letters')}>{t('replays.none-go')}</a>
    </>
  );
  return (
    <div class="stack">
      <Rows found={replays} none={none}>
        {(replay) => <Row key={replay.id} replay={replay} onDone={replays.refresh} />}
      </Rows>
    </div>
  );
}

/** The request of a replay. The document leaves it open. */
interface Selection {
  ids?: number[];
  queue?: string;
  error_group?: string;
}

/** The subject of a replay: causes and queues, as its selection or its messages say. */
function aboutOf({ selection, causes = [], queues = [] }: Replay) {
  const { error_group, queue } = selection as Selection;
  return { causes: error_group ? [error_group] : causes, queues: queue ? [queue] : queues };
}

function Row({ replay, onDone }: { replay: Replay; onDone(): void }) {
  const { error, run } = useAct();
  const { causes, queues } = aboutOf(replay);
  const send = (action: 'pause' | 'resume' | 'cancel') =>
    run(() =>
      must(notificationService.POST('/admin/dlq/replays/{id}/{action}', { params: { path: { id: replay.id, action } } })).then(onDone),
    );
  return (
    <li>
      <div>
        <a href={href('ops/dead-letters', { state: 'all', replay_id: replay.id })}>
          {causes.length > 0 ? causes.map(cause).join(' · ') : t('replays.no-cause')}
        </a>
        <p class="meta">
          <strong>{tn('replays.of', replay.total)}</strong>
          {queues.map((queue) => (
            <span key={queue}>{queue}</span>
          ))}
          {replay.actor && <span>{t('audit.by', { actor: replay.actor === session.value?.sub ? t('audit.you') : replay.actor })}</span>}
          <Time at={replay.created_at} full />
        </p>
        <progress max={replay.total || 1} value={replay.resolved} aria-label={t('replays.progress')} />
        <p class="meta">
          <span class="state" data-state={replay.state}>
            {t(`replays.state.${replay.state}`)}
          </span>
          <span>{t('replays.resolved', { count: number(replay.resolved) })}</span>
          <span data-warn={replay.failed > 0}>{t('replays.failed', { count: number(replay.failed) })}</span>
          {replay.pending + replay.in_flight > 0 && (
            <span>{t('replays.pending', { count: number(replay.pending + replay.in_flight) })}</span>
          )}
          {untouched(replay) > 0 && <span>{t('replays.untouched', { count: number(untouched(replay)) })}</span>}
        </p>
        {replay.reason && <p class="quiet">{stopReason(replay.reason)}</p>}
        <Fault error={error} />
      </div>
      <Acts>
        <div class="bar">
          {actionsOf(replay).map((action) => (
            <button key={action} type="button" onClick={() => send(action)}>
              {t(`replays.${action}`)}
            </button>
          ))}
        </div>
      </Acts>
    </li>
  );
}

/** How many a replay that has ended has not sent: they are open as before. */
function untouched({ state, total, resolved, failed, pending, in_flight }: Replay): number {
  return state === 'stopped' || state === 'cancelled' ? Math.max(0, total - resolved - failed - pending - in_flight) : 0;
}
