import { useState } from 'preact/hooks';

import { Failure, must, notificationService, type DeadLetterGroup } from '../../api/client';
import { t } from '../../lang/console';
import { session } from '../../state/session';
import { Lines } from '../../ui/field';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { Time } from '../../ui/time';

export type Note = NonNullable<DeadLetterGroup['note']>;
/** The subject of a note: messages that failed in a queue for the same reason. */
export type Cause = Pick<DeadLetterGroup, 'queue' | 'error_class' | 'error_group'>;

/** As much as the service takes. */
const MAX = 2000;

const names = (actor: string) => (actor === session.value?.sub ? t('audit.you') : actor);

/** The note of operators on a group of dead letters, with its author and time. */
export function NoteText({ note }: { note: Note }) {
  return (
    <div class="note">
      <p class="wrap story">{note.text}</p>
      <p class="meta">
        <span>{t('audit.by', { actor: names(note.author) })}</span>
        <Time at={note.written_at} full />
      </p>
    </div>
  );
}

interface Props {
  cause: Cause;
  note: Note | undefined;
  onClose(): void;
}

/** Writes or removes the note on a group. What was typed stays if somebody else was faster. */
export function NoteForm({ cause: { queue, error_class, error_group }, note, onClose }: Props) {
  const [text, setText] = useState(note?.text ?? '');
  const [seen, setSeen] = useState(note);
  const [clash, setClash] = useState(false);
  const [error, setError] = useState<unknown>();
  const params = () => ({
    query: { queue, error_class: error_class as 'permanent', error_group },
    header: { 'If-Match': `"${seen?.version ?? 0}"` },
  });
  const refuse = async (failure: unknown) => {
    setError(failure);
    if (!(failure instanceof Failure) || failure.kind !== 'stale-version') return;
    setSeen(await presentNote({ queue, error_class, error_group }));
    setClash(true);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    must(notificationService.PUT('/admin/dlq/groups/note', { params: params(), body: { text } })).then(onClose, refuse);
  };
  const remove = () => must(notificationService.DELETE('/admin/dlq/groups/note', { params: params() })).then(onClose, refuse);
  return (
    <Modal title={t('dead.note')} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <p class="quiet">{t('dead.note.hint')}</p>
        <Fault error={error} />
        {clash && (seen ? <NoteText note={seen} /> : <p class="note">{t('dead.note.gone')}</p>)}
        <Lines label={t('dead.note.text')} data-first required maxLength={MAX} rows={4} value={text} onValue={setText} />
        <div class="bar">
          <button class="primary">{t(clash ? 'dead.note.replace' : 'dead.note.save')}</button>
          {seen && (
            <button type="button" class="danger-quiet" onClick={remove}>
              {t('dead.note.remove')}
            </button>
          )}
        </div>
      </form>
    </Modal>
  );
}

/** The note as it is now: from a letter of the group, which may have no open one. */
async function presentNote({ queue, error_class, error_group }: Cause): Promise<Note | undefined> {
  const query = { queue, error_class: error_class as 'permanent', error_group, limit: 1 };
  const { items } = await must(notificationService.GET('/admin/dlq/messages', { params: { query } }));
  return items[0]?.note;
}
