import { useEffect, useState } from 'preact/hooks';

import type { Task, Work } from '../../api/client';
import { t } from '../../lang/queue';
import type { OpenWork } from '../../state/work';
import { useAct } from '../../ui/act';
import { Lines } from '../../ui/field';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { href } from '../../ui/router';
import { Time } from '../../ui/time';

/** How often a resolved report is read again: no event says that it is confirmed, or that the words have changed. */
const READ_MS = 10_000;

/** The reporter's verdict on a resolution: on top while it is disputed, because it waits for a decision. */
export function Judged({ task, open }: { task: Task; open: OpenWork }) {
  const isResolved = task.status === 'resolved';
  useEffect(() => {
    if (!isResolved) return;
    const timer = setInterval(() => document.visibilityState === 'visible' && void open.load(), READ_MS);
    return () => clearInterval(timer);
  }, [open, isResolved]);
  const work = open.work.value;
  if (!work) return null;
  if (task.disputed) return <Disputed task={task} work={work} keep={(note) => open.keepResolved(task, note)} />;
  const { verdict } = work;
  if (!verdict || (!isResolved && !verdict.text)) return null;
  // A dispute that has ended was about an earlier resolution, or is decided.
  return <Said verdict={verdict} earlier={!verdict.fixed || !isResolved} />;
}

type Verdict = NonNullable<Work['verdict']>;

/** That a resolved report is not fixed, who of several reporters says so, and the way to keep it resolved all the same. */
function Disputed({ task, work: { verdict, disputes = [] }, keep }: { task: Task; work: Work; keep(note: string): Promise<void> }) {
  const [asking, setAsking] = useState(false);
  return (
    <section class="stack note" aria-label={t('work.reporter.disputed')}>
      <strong>{t('disputed')}</strong>
      {verdict && !verdict.fixed && <Said verdict={verdict} />}
      {disputes.map(({ report_id, verdict }) => (
        <div key={report_id}>
          <a href={href('queue', { status: 'all', report: report_id })}>{t('disputed.duplicate')}</a>
          <Said verdict={verdict} />
        </div>
      ))}
      <p class="quiet">{t('disputed.hint')}</p>
      <p class="bar">
        <button type="button" aria-haspopup="dialog" onClick={() => setAsking(true)}>
          {t('disputed.keep')}
        </button>
      </p>
      {asking && <KeepDialog title={task.title} keep={keep} onClose={() => setAsking(false)} />}
    </section>
  );
}

/** The reporter's word, which officials alone read. */
function Said({ verdict: { fixed, text, given_at }, earlier = false }: { verdict: Verdict; earlier?: boolean }) {
  return (
    <p class="internal said">
      <small>
        {earlier && `${t('disputed.earlier')} `}
        {t(fixed ? 'timeline.confirmed' : 'timeline.disputed')} · <Time at={given_at} />
      </small>
      {text && <br />}
      {text}
    </p>
  );
}

function KeepDialog({ title, keep, onClose }: { title: string; keep(note: string): Promise<void>; onClose(): void }) {
  const [note, setNote] = useState('');
  const { busy, error, submits } = useAct();
  return (
    <Modal title={t('disputed.keep')} onClose={onClose}>
      <form class="stack" onSubmit={submits(() => keep(note.trim()).then(onClose))} aria-busy={busy}>
        <p>{title}</p>
        <Lines label={t('change-status.note-required')} data-first rows={3} required maxLength={2000} value={note} onValue={setNote} />
        <Fault error={error} />
        <button class="primary">{t('disputed.keep')}</button>
      </form>
    </Modal>
  );
}
