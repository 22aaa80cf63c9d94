import { useRef, useState } from 'preact/hooks';

import { Failure, type Report, type Status } from '../../api/client';
import { t } from '../../lang/i18n';
import { keepNote, noteOn } from '../../state/notes';
import { Fault } from '../../ui/problem';

interface Props {
  open: { changeStatus(seen: Report, status: Status, note: string): Promise<void> };
  report: Report;
  onDone?: () => void;
}

/**
 * Changes a report's status. When another official was faster the form says
 * so, keeps the note, and asks for a new decision. The note is also kept when
 * the session ends.
 */
export function StatusForm({ open, report, onDone }: Props) {
  const [status, setStatus] = useState<Status>();
  const note = noteOn(report.id);
  const [error, setError] = useState<unknown>();
  const [seen, setSeen] = useState(report.status);
  const form = useRef<HTMLFormElement>(null);
  const overtaken = seen !== report.status;
  const choice = report.transitions.find((transition) => transition.status === status);
  const required = choice?.note_required ?? false;

  const submit = async (event: Event) => {
    event.preventDefault();
    if (!choice) return;
    try {
      await open.changeStatus(report, choice.status, note.trim());
      setStatus(undefined);
      keepNote(report.id, '');
      setError(undefined);
      setSeen(choice.status);
      onDone?.();
    } catch (failure) {
      setError(failure);
    }
  };
  const stale = error instanceof Failure && error.kind === 'stale-version';

  return (
    <form ref={form} class="stack panel" onSubmit={submit} aria-label={t('change-status')}>
      <h2>{t('change-status')}</h2>
      {(overtaken || stale) && (
        <p class="note" role="status">
          {t('change-status.overtaken', { status: t(`status.${report.status}`) })}
        </p>
      )}
      <fieldset class="choices">
        <legend>{t('change-status.to')}</legend>
        {report.transitions.map(({ status: to }, i) => (
          <label key={to} class="chip">
            <input
              type="radio"
              data-first={i === 0}
              name={`status-${report.id}`}
              required
              checked={choice?.status === to}
              onChange={() => setStatus(to)}
            />
            <span>{t(`status.${to}`)}</span>
          </label>
        ))}
      </fieldset>
      <label class="field">
        <span>{t(required ? 'change-status.note-required' : 'change-status.note')}</span>
        <textarea rows={3} maxLength={2000} required={required} value={note} onInput={(e) => keepNote(report.id, e.currentTarget.value)} />
      </label>
      {!stale && <Fault error={error} />}
      <button class="primary">{t('change-status.save')}</button>
    </form>
  );
}
