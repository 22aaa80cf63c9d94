import { useState } from 'preact/hooks';

import { must, notificationService, type DeadLetter } from '../../api/client';
import { number, t } from '../../lang/console';
import { cause, failureClass, helpsReplay } from '../../ui/cause';
import { Copy } from '../../ui/copy';
import { Icon } from '../../ui/icons';
import { Fault } from '../../ui/problem';
import { usePoll } from '../../ui/poll';
import { href } from '../../ui/router';
import { Time } from '../../ui/time';
import { Acts } from './acts';
import { EditForm } from './edit-form';
import { StoryLink } from './message/message';
import { NoteForm, NoteText } from './note';
import { Reason } from './reason';
import { ReportLink } from './report-link';
import { Waiting } from './waiting';

/** One dead letter: its content, why it failed, and what can be done. */
export function DeadLetterDetail({ id }: { id: number }) {
  const params = { path: { id } };
  const letter = usePoll(() => must(notificationService.GET('/admin/dlq/messages/{id}', { params })), [id]);
  const found = letter.value;
  return (
    <article class="stack">
      <a class="back" href={href('ops/dead-letters')}>
        <Icon name="back" /> {t('dead.groups')}
      </a>
      {found ? (
        <Fault error={letter.error} retry={letter.refresh} of="message" />
      ) : (
        <Waiting error={letter.error} retry={letter.refresh} of="message" />
      )}
      {found && (
        <>
          <h2 class="wrap">{cause(found.error)}</h2>
          <p class="meta">
            <span class="state" data-state={found.state} role="status">
              {t(`dead.state.${found.state}`)}
            </span>
            <span>{failureClass(found.error_class)}</span>
            <span>{found.queue}</span>
            <Time at={found.failed_at} full seconds />
            {found.close_reason && <span>{found.close_reason}</span>}
            <span>#{found.id}</span>
            <Copy text={found.message_id} />
            <StoryLink id={found.message_id} />
            <ReportLink letter={found} />
            {found.parent_id && <a href={href(`ops/dead-letters/${found.parent_id}`)}>{t('dead.edited-from')}</a>}
          </p>
          {found.note && <NoteText note={found.note} />}
          <Acts>
            {found.state === 'open' && <Actions letter={found} onDone={letter.refresh} />}
            {found.state === 'discarded' && <Restore letter={found} onDone={letter.refresh} />}
            <WriteNote letter={found} onDone={letter.refresh} />
          </Acts>
          <Part name={t('dead.body')} value={found.body} />
          <Part name={t('dead.headers')} value={found.headers} />
          <Part name={t('dead.properties')} value={found.properties} />
          <Attempts letter={found} />
        </>
      )}
    </article>
  );
}

function Actions({ letter, onDone }: { letter: DeadLetter; onDone(): void }) {
  const [open, setOpen] = useState<'edit' | 'discard'>();
  const [error, setError] = useState<unknown>();
  const params = { path: { id: letter.id } };
  const helps = helpsReplay(letter.error_class);
  const replay = () => must(notificationService.POST('/admin/dlq/messages/{id}/replay', { params })).then(onDone, setError);
  const discard = (reason: string) => must(notificationService.POST('/admin/dlq/messages/{id}/discard', { params, body: { reason } }));
  const close = () => {
    setOpen(undefined);
    onDone();
  };
  return (
    <div class="stack">
      <div class="bar">
        <button type="button" class={helps ? 'primary' : undefined} onClick={replay}>
          {t('replay')}
        </button>
        <button type="button" class={helps ? undefined : 'primary'} aria-haspopup="dialog" onClick={() => setOpen('edit')}>
          {t('edit')}
        </button>
        <button type="button" class="danger-quiet" aria-haspopup="dialog" onClick={() => setOpen('discard')}>
          {t('discard')}
        </button>
      </div>
      <Fault error={error} />
      {open === 'edit' && <EditForm letter={letter} onClose={close} />}
      {open === 'discard' && <Reason title={t('discard')} onSubmit={discard} onClose={close} />}
    </div>
  );
}

function Restore({ letter, onDone }: { letter: DeadLetter; onDone(): void }) {
  const [asked, setAsked] = useState(false);
  const params = { path: { id: letter.id } };
  const restore = (reason: string) => must(notificationService.POST('/admin/dlq/messages/{id}/restore', { params, body: { reason } }));
  const close = () => {
    setAsked(false);
    onDone();
  };
  return (
    <div class="bar">
      <button type="button" aria-haspopup="dialog" onClick={() => setAsked(true)}>
        {t('dead.restore')}
      </button>
      {asked && <Reason title={t('dead.restore')} hint={t('dead.restore.hint')} onSubmit={restore} onClose={close} />}
    </div>
  );
}

function WriteNote({ letter, onDone }: { letter: DeadLetter; onDone(): void }) {
  const [open, setOpen] = useState(false);
  const close = () => {
    setOpen(false);
    onDone();
  };
  return (
    <div class="bar">
      <button type="button" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        {t(letter.note ? 'dead.note.edit' : 'dead.note.add')}
      </button>
      {open && <NoteForm cause={letter} note={letter.note} onClose={close} />}
    </div>
  );
}

function Part({ name, value }: { name: string; value: unknown }) {
  return (
    <section class="part">
      <h3>{name}</h3>
      <pre>{typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</pre>
    </section>
  );
}

function Attempts({ letter }: { letter: DeadLetter }) {
  return (
    <section class="part">
      <h3>{t('dead.attempts')}</h3>
      <ol class="timeline">
        {letter.attempts?.map((attempt, i) => (
          <li key={i}>
            <span class="badge">{failureClass(attempt.error_class)}</span>
            <small>
              <Time at={attempt.failed_at} full /> · {t('attempts', { count: number(attempt.retries + 1) })}
            </small>
            <code>{cause(attempt.error)}</code>
          </li>
        ))}
      </ol>
    </section>
  );
}
