import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';

import type { Status, Task } from '../../api/client';
import { Comments } from '../../comments/comments';
import { OfficialPart } from '../../dialogue/official';
import { number, t, tn } from '../../lang/queue';
import { Where } from '../../map/where';
import { Moderation } from '../../moderation/moderation';
import { Gallery } from '../../photos/gallery';
import { categoryName } from '../../state/categories';
import { config } from '../../state/config';
import { areaName, loadWaiting, templates } from '../../state/desk';
import { isElsewhere, moderates } from '../../state/scope';
import { movedTo, type Moved } from '../../state/undo';
import { keepNote, noteOn } from '../../state/notes';
import { assignmentOf, createWork, type OpenWork } from '../../state/work';
import { useAct } from '../../ui/act';
import { Badge } from '../../ui/badge';
import { Icon } from '../../ui/icons';
import { Fault } from '../../ui/problem';
import { reference } from '../../ui/reference';
import { href } from '../../ui/router';
import { dayOf, exactTime, Time } from '../../ui/time';
import { useSubject } from '../../ui/title';
import { StatusForm } from '../report/status-form';
import { Acts } from './acts';
import { Judged } from './verdict';
import { Intake } from './caller';
import { Duplicates } from './duplicates';
import { FirmSaid } from './firm';
import { Overdue } from './overdue';

/** An official who walks through the list fast requests no report on the way. */
const REST_MS = 120;

interface Props {
  id: string;
  /** The report as the list has it, if it does. */
  task: Task | undefined;
  onTask(task: Task): void;
  onMoved(moved: Moved): void;
  onAssign(task: Task): void;
  onCorrect(task: Task): void;
  onForward(task: Task): void;
  onAsk(task: Task): void;
  onClose(): void;
  onNext?: () => void;
  onPrevious?: () => void;
}

/**
 * A report with all that officials know of it, and what they can do. What the
 * list knows is shown at once. Another report is another Detail, by its key.
 */
export function Detail({ id, task: listed, onTask, onMoved, onAssign, onCorrect, onForward, onAsk, onClose, onNext, onPrevious }: Props) {
  const open = useMemo(() => createWork(id, onTask), [id]);
  useEffect(() => {
    const timer = setTimeout(() => void open.load(), REST_MS);
    const leave = open.watch();
    return () => {
      clearTimeout(timer);
      leave();
    };
  }, [open]);
  // A report that has just left the list stays, with all that is typed here, until its state is known from elsewhere.
  const latest = useRef<Task | undefined>(undefined);
  const found = listed ?? open.work.value?.report ?? latest.current;
  latest.current = found;
  // Nothing that was read before is shown of another department's.
  const elsewhere = isElsewhere(open.error.value);
  const task = elsewhere ? undefined : found;
  const assigned = task && JSON.stringify(assignmentOf(task));
  useEffect(() => {
    // Assigned elsewhere, by the reader in the list or by somebody else: who did it is not known yet.
    const known = open.work.value?.report;
    if (known && JSON.stringify(assignmentOf(known)) !== assigned) void open.load();
  }, [assigned]);
  useSubject(task?.title);
  const article = useRef<HTMLElement>(null);
  const focused = article.current?.contains(document.activeElement);
  useLayoutEffect(() => {
    // The heading that had the focus is gone with the wait.
    if (focused && document.activeElement === document.body) article.current?.querySelector('h2')?.focus();
  }, [!task]);
  const moved = useRef<Moved>(undefined);
  const lastComment = useRef<string>(undefined);
  const changeStatus = async (seen: Task, status: Status, note: string) => {
    const { version, transitions } = await open.changeStatus(seen, status, note);
    moved.current = movedTo(status, [seen], () => version, transitions);
  };
  return (
    <article class="stack" ref={article}>
      <div class="bar spread">
        <button type="button" class="link desk-back" onClick={onClose}>
          <Icon name="back" /> {t('queue')}
        </button>
        <span class="bar steps-between">
          <button type="button" class="plain" aria-label={t('work.previous')} disabled={!onPrevious} onClick={onPrevious}>
            <Icon name="up" />
          </button>
          <button type="button" class="plain" aria-label={t('work.next')} disabled={!onNext} onClick={onNext}>
            <Icon name="down" />
          </button>
        </span>
      </div>
      {!task && <h2 tabIndex={-1}>{t(open.error.value ? 'report' : 'loading')}</h2>}
      {task && (
        <>
          <Judged task={task} open={open} />
          <FirmSaid
            task={task}
            job={open.work.value?.job}
            onStatus={async (status) => {
              await changeStatus(task, status, '');
              if (moved.current) onMoved(moved.current);
            }}
          />
          <Head task={task} open={open} onCorrect={() => onCorrect(task)} />
          {task.abuse_reports > 0 && (
            <p class="note">
              {tn('abuse.times', task.abuse_reports)} <a href={href('queue/abuse')}>{t('abuse.title')}</a>
            </p>
          )}
          {config.comments && (
            <Comments
              report={{ ...task, mine: false }}
              quiet
              unseen={task.new_comments}
              onSeen={async ({ id: last }) => {
                await open.seeComments(last);
                void loadWaiting().catch(() => {});
              }}
              onLast={(last) => (lastComment.current = last?.id)}
            />
          )}
          <OfficialPart task={task} open={open} />
          {/* A caller has no account to answer with. */}
          <Worker
            task={task}
            onAssign={() => onAssign(task)}
            onForward={() => onForward(task)}
            onAsk={open.work.value?.intake ? undefined : () => onAsk(task)}
          />
          {!task.hidden_reason && (
            <StatusForm
              titled={false}
              open={{
                changeStatus,
                async reply(text) {
                  await open.reply(text);
                  // An official who replies has seen the comments above.
                  if (task.new_comments === 0 || !lastComment.current) return;
                  // The reply is sent, whatever comes of this.
                  await open.seeComments(lastComment.current).then(loadWaiting, () => {});
                },
              }}
              report={task}
              templates={templates.value ?? []}
              onDone={() => moved.current && onMoved(moved.current)}
            />
          )}
          <NoteForm id={id} open={open} />
          <Acts acts={open.work.value?.acts ?? []} />
          <MoreActs task={task} open={open} />
        </>
      )}
      <Fault error={open.error.value} {...(!elsewhere && { retry: () => void open.load() })} />
      {elsewhere && <a href={href(`reports/${id}`)}>{t('work.public')}</a>}
    </article>
  );
}

/** The reporter's words and photos, and the place: the facts to decide by. */
function Head({ task, open, onCorrect }: { task: Task; open: OpenWork; onCorrect(): void }) {
  const words = open.words.value;
  const intake = open.work.value?.intake;
  return (
    <header class="stack">
      <h2 tabIndex={-1}>{task.title}</h2>
      <p class="meta">
        <span aria-live="polite">
          <Badge status={task.status} />
        </span>
        {task.visibility === 'officials' && <strong>{t('private')}</strong>}
        {task.withdrawn_at && <strong>{t('withdrawn')}</strong>}
        <span>{categoryName(task)}</span>
        {task.privacy_level === 'anonymous' && <span>{t('report.by-nobody')}</span>}
        {words?.reporter && <span>{t('report.by', { name: words.reporter })}</span>}
        {open.work.value?.application && <span>{t('work.application', { name: open.work.value.application })}</span>}
        <Time at={task.created_at} full />
        <span>
          {number(task.score)} {tn('score', task.score)}
        </span>
        <span>
          {t('report.reference')} <code>{reference(task.id)}</code>
        </span>
        <a href={href(`reports/${task.id}`)}>{t('work.public')}</a>
      </p>
      {intake && <Intake id={task.id} intake={intake} />}
      {words ? (
        <Gallery
          report={{ id: task.id, mine: false, ...(task.withdrawn_at && { withdrawn_at: task.withdrawn_at }) }}
          rights={moderates() ? 'moderate' : 'work'}
          folded
        />
      ) : (
        <p class="skeleton" aria-hidden="true" />
      )}
      {words && <p class="story">{words.description}</p>}
      <Where report={task} />
      {!task.hidden_reason && (
        <p>
          <button type="button" class="link" aria-haspopup="dialog" onClick={onCorrect}>
            {t('correct')}
          </button>
        </p>
      )}
    </header>
  );
}

/** The people who work on it, and the deadline. */
function Worker({
  task,
  onAssign,
  onForward,
  onAsk,
}: {
  task: Task;
  onAssign(): void;
  onForward(): void;
  onAsk: (() => void) | undefined;
}) {
  return (
    <div class="stack worker">
      <p class="bar">
        <span class="wrap">
          {t('work.with')}: <strong>{task.assignee?.name ?? t('work.nobody')}</strong>
          {task.area && ` · ${areaName(task.area)}`}
          {task.department_name && ` · ${task.routed ? t('work.routed', { department: task.department_name }) : task.department_name}`}
        </span>
        <button type="button" class="link" aria-haspopup="dialog" onClick={onAssign}>
          {t('work.assign')}
        </button>
        <button type="button" class="link" aria-haspopup="dialog" onClick={onForward}>
          {t('forward')}
        </button>
      </p>
      <External task={task} />
      <Due task={task} onAsk={onAsk} />
    </div>
  );
}

/** The number and state that a system of a department gave it. */
function External({ task: { external_ref: ref } }: { task: Task }) {
  if (!ref) return null;
  const named = t('work.external', { system: ref.system, number: ref.number });
  return (
    <p class="meta">
      {ref.url ? (
        <a href={ref.url} target="_blank" rel="noopener noreferrer">
          {named}
        </a>
      ) : (
        <span>{named}</span>
      )}
      {ref.state && <span>{ref.state}</span>}
      <Time at={ref.set_at} />
    </p>
  );
}

/** The acts on few reports; open where one of them was done. */
function MoreActs({ task, open }: { task: Task; open: OpenWork }) {
  const duplicates = open.work.value?.duplicates ?? [];
  const turns = (open.work.value?.acts ?? []).filter(({ action }) => action === 'restrict' || action === 'publish');
  const restricted = task.visibility === 'officials' && turns.at(-1)?.action === 'restrict';
  const inUse = task.hidden_reason !== undefined || task.duplicate_of !== undefined || duplicates.length > 0;
  return (
    <details class="more-acts" open={inUse}>
      <summary>{t(moderates() ? 'work.more' : 'work.duplicates')}</summary>
      <div class="stack">
        <Duplicates task={task} open={open} />
        {(moderates() || task.hidden_reason) && (
          <section class="stack" aria-labelledby="moderation">
            <h3 id="moderation">{t('moderation')}</h3>
            <Moderation report={task} restricted={restricted} onDone={open.moderated} />
          </section>
        )}
      </div>
    </details>
  );
}

/** Until when the work is to be finished, and whether the clock stands still because the reporter was asked something. */
function Due({ task, onAsk }: { task: Task; onAsk: (() => void) | undefined }) {
  const { due_at, overdue_level, question } = task;
  const isOpen = task.status === 'pending' || task.status === 'in_progress';
  if (task.hidden_reason || (!isOpen && !task.disputed)) return null;
  return (
    <p class="bar">
      <Overdue level={overdue_level} />
      {due_at && <span>{t('work.due', { time: exactTime(new Date(due_at)) })}</span>}
      {question && <span>{t('work.waits-until', { day: dayOf(question.ends_on) })}</span>}
      {isOpen && !question && onAsk && (
        <button type="button" class="link" aria-haspopup="dialog" onClick={onAsk}>
          {t('ask')}
        </button>
      )}
    </p>
  );
}

/** Writes a note that only officials read. What is written is kept until it is sent. */
function NoteForm({ id, open }: { id: string; open: OpenWork }) {
  const { busy, error, submits } = useAct();
  // Its own draft, beside that of the public note.
  const draft = `internal.${id}`;
  const text = noteOn(draft);
  const submit = submits(async () => {
    if (!text.trim()) return;
    await open.addNote(text.trim());
    keepNote(draft, '');
  });
  return (
    <form class="stack internal" onSubmit={submit} aria-busy={busy}>
      <label class="field">
        <span>{t('work.note')}</span>
        <small>{t('work.note-hint')}</small>
        <textarea data-internal rows={1} required maxLength={4000} value={text} onInput={(e) => keepNote(draft, e.currentTarget.value)} />
      </label>
      <Fault error={error} />
      <button>{t('work.note-add')}</button>
    </form>
  );
}
