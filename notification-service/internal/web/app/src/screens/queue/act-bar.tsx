import { useEffect, useState } from 'preact/hooks';

import { t, tn } from '../../lang/queue';
import { moveBack, type Moved } from '../../state/undo';
import { useAct } from '../../ui/act';
import { Icon } from '../../ui/icons';
import { Fault } from '../../ui/problem';
import type { useDesk } from './use-desk';

/** The outcome of an act is shown for so long. Later the reports are moved back by hand. */
const SHOWN_MS = 60_000;

/** The parts of the desk that the bar shows and changes. */
type Props = { desk: Pick<ReturnType<typeof useDesk>, 'chosen' | 'done' | 'setDone' | 'undo' | 'run' | 'queue'> };

/**
 * The acts on the selected reports, and the outcome of the last one,
 * with the way back. It stays in sight, however far the list is scrolled.
 */
export function ActBar({ desk: { chosen, done, setDone, undo: undoing, run, queue } }: Props) {
  const [undone, setUndone] = useState<{ moved: number; refused: number }>();
  const { busy, error, setError, run: attempt } = useAct();
  useEffect(() => {
    setUndone(undefined);
    setError(undefined);
  }, [done?.to, done?.tasks]);
  const back = undone ? [] : (done?.back ?? []);
  const undo = () =>
    attempt(async () => {
      if (!done || back.length === 0) return;
      const results = await moveBack(done);
      const moved = results.filter((result) => result.moved).length;
      setUndone({ moved, refused: results.length - moved });
      void queue.refresh();
    });
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(undefined), SHOWN_MS);
    return () => clearTimeout(timer);
    // A result that is taken back is another one.
  }, [done, undone]);
  undoing.current = () => void undo();
  const close = () => {
    setUndone(undefined);
    setDone(undefined);
  };
  const shown = chosen.length > 0 || done !== undefined;
  return (
    // Out of sight, it is still there for those who hear it.
    <div class={shown ? 'act-bar' : 'hidden'} data-shown={shown}>
      <div class="bar">
        <p role="status">{chosen.length > 0 && <strong>{tn('work.chosen', chosen.length)}</strong>}</p>
        {chosen.length > 0 && (
          <>
            <button type="button" class="primary" aria-haspopup="dialog" onClick={() => run('move')}>
              {t('work.move')}
            </button>
            <button type="button" aria-haspopup="dialog" onClick={() => run('assign')}>
              {t('work.assign')}
            </button>
            <button type="button" class="link" onClick={() => queue.select([])}>
              {t('work.clear')}
            </button>
          </>
        )}
      </div>
      <div class="bar">
        <p role="status" class="wrap">
          {undone ? <Undone {...undone} /> : done && <Done done={done} />}
        </p>
        {back.length > 0 && (
          <button type="button" disabled={busy} onClick={() => void undo()}>
            {t('work.undo')}
          </button>
        )}
        {done && (
          <button type="button" class="plain" aria-label={t('work.done.close')} onClick={close}>
            <Icon name="close" />
          </button>
        )}
      </div>
      <Fault error={error} />
    </div>
  );
}

function Done({ done: { to, tasks, back } }: { done: Moved }) {
  const [one] = tasks;
  const status = t(`status.${to}`);
  return (
    <>
      {tasks.length === 1 && one ? t('work.moved', { title: one.title, status }) : tn('work.moved-to', tasks.length, { status })}{' '}
      {back?.length === 0 && <span class="quiet">{t('work.no-undo')}</span>}
    </>
  );
}

function Undone({ moved, refused }: { moved: number; refused: number }) {
  return (
    <>
      {tn('work.undone', moved)} {refused > 0 && tn('work.not-undone', refused)}
    </>
  );
}
