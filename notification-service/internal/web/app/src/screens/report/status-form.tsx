import { useRef, useState } from 'preact/hooks';

import { Failure, type Report, type Status, type Template } from '../../api/client';
import { t } from '../../lang/i18n';
import { keepNote, noteOn } from '../../state/notes';
import { Fault } from '../../ui/problem';

interface Props<R> {
  open: { changeStatus(seen: R, status: Status, note: string): Promise<void> };
  report: R;
  /** What officials write often; one that is chosen fills the form in. */
  templates?: Template[];
  onDone?: () => void;
}

/**
 * Changes a report's status. When another official was faster the form says
 * so, keeps the note, and asks for a new decision. The note is also kept when
 * the session ends.
 */
export function StatusForm<R extends Pick<Report, 'id' | 'status' | 'transitions'>>({ open, report, templates = [], onDone }: Props<R>) {
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
  const fill = ({ status: to, text }: Template) => {
    if (to && report.transitions.some((transition) => transition.status === to)) setStatus(to);
    keepNote(report.id, text);
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
      <TemplateField templates={templates} onChoose={fill} />
      <label class="field">
        <span>{t(required ? 'change-status.note-required' : 'change-status.note')}</span>
        <textarea rows={3} maxLength={2000} required={required} value={note} onInput={(e) => keepNote(report.id, e.currentTarget.value)} />
      </label>
      {!stale && <Fault error={error} />}
      <button class="primary">{t('change-status.save')}</button>
    </form>
  );
}

interface TemplateProps {
  templates: Template[];
  onChoose(template: Template): void;
}

/** A list of templates to choose from; nothing where there are none. */
export function TemplateField({ templates, onChoose }: TemplateProps) {
  if (templates.length === 0) return null;
  const choose = (list: HTMLSelectElement) => {
    const chosen = templates.find(({ id }) => String(id) === list.value);
    list.value = '';
    if (chosen) onChoose(chosen);
  };
  return (
    <label class="field">
      <span>{t('template')}</span>
      <select onChange={(event) => choose(event.currentTarget)}>
        <option value="">{t('template.choose')}</option>
        {templates.map(({ id, title }) => (
          <option key={id} value={id}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}
