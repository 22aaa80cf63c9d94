import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { Failure, type Report, type Status, type Template } from '../../api/client';
import { t } from '../../lang/dialogue';
import { createChoice, MAX_PHOTOS, ofFinishedWork } from '../../photos/choice';
import { sendFinished } from '../../photos/finished-work';
import { Picker } from '../../photos/picker';
import { config } from '../../state/config';
import { chosenTemplate, finishedReport, keepNote, noteOn } from '../../state/notes';
import { useAct } from '../../ui/act';
import { Options } from '../../ui/field';
import { Fault } from '../../ui/problem';
import { holdingKeys } from '../../ui/shortcuts';

interface Props<R> {
  open: { changeStatus(seen: R, status: Status, note: string): Promise<void>; reply(text: string): Promise<void> };
  report: R;
  /** The templates of officials; one that is chosen fills the form in. */
  templates?: Template[];
  /** Whether the heading is seen, and not only heard. */
  titled?: boolean;
  /** Called after a change of status. */
  onDone?: () => void;
}

/** How long an official waits for a photo at the most. */
const UPLOAD_MS = 120_000;

/**
 * Changes a report's status, or replies to everybody without changing it. When
 * another official was faster the form says so, keeps the note, and asks for a new
 * decision. The note is also kept when the session ends.
 */
export function StatusForm<R extends Pick<Report, 'id' | 'status' | 'transitions'>>({
  open,
  report,
  templates = [],
  titled = true,
  onDone,
}: Props<R>) {
  const [status, setStatus] = useState<Status>();
  const note = noteOn(report.id);
  const { busy, error, submits } = useAct();
  const [seen, setSeen] = useState(report.status);
  const [replied, setReplied] = useState(false);
  const overtaken = seen !== report.status;
  const choice = report.transitions.find((transition) => transition.status === status);
  const required = choice?.note_required ?? false;
  const form = useRef<HTMLFormElement>(null);
  const photos = useMemo(() => createChoice(ofFinishedWork(report.id)), [report.id]);
  useEffect(() => photos.open(), [photos]);
  const finishes = config.photos && choice?.status === 'resolved';

  const send = async () => {
    if (finishes) await sendFinished(photos, report.id, AbortSignal.timeout(UPLOAD_MS));
    if (choice) await open.changeStatus(report, choice.status, note.trim());
    else await open.reply(note.trim());
    setStatus(undefined);
    keepNote(report.id, '');
    setReplied(!choice);
    setSeen(choice?.status ?? report.status);
    if (choice) onDone?.();
  };
  const submit = submits(async () => {
    if (choice || note.trim()) await holdingKeys(send);
  });
  const fill = ({ status: to, text }: Template) => {
    if (to && report.transitions.some((transition) => transition.status === to)) setStatus(to);
    keepNote(report.id, text);
  };
  useEffect(() => {
    const chosen = chosenTemplate.value;
    if (chosen?.report !== report.id) return;
    chosenTemplate.value = undefined;
    fill(chosen.template);
  }, [chosenTemplate.value, report.id]);
  useEffect(() => {
    if (finishedReport.value !== report.id || !report.transitions.some(({ status }) => status === 'resolved')) return;
    if (!finishes) return setStatus('resolved');
    finishedReport.value = undefined;
    form.current?.querySelector<HTMLElement>('input[type=file]')?.click();
  }, [finishedReport.value, report.id, report.transitions, finishes]);
  const stale = error instanceof Failure && error.kind === 'stale-version';

  return (
    <form class="stack panel status-form" ref={form} onSubmit={submit} aria-label={t('reply')} aria-busy={busy}>
      <h2 class={titled ? undefined : 'hidden'}>{t('reply')}</h2>
      {(overtaken || stale) && (
        <p class="note" role="status">
          {t('change-status.overtaken', { status: t(`status.${report.status}`) })}
        </p>
      )}
      <fieldset class="choices">
        <legend class="hidden">{t('change-status.to')}</legend>
        {report.transitions.map(({ status: to }, i) => (
          <label key={to} class="chip">
            <input
              type="radio"
              data-first={i === 0}
              name={`status-${report.id}`}
              checked={choice?.status === to}
              onChange={() => setStatus(to)}
            />
            <span>{t(`status.${to}`)}</span>
          </label>
        ))}
        <label class="chip">
          <input type="radio" name={`status-${report.id}`} checked={!choice} onChange={() => setStatus(undefined)} />
          <span>{t('reply.only')}</span>
        </label>
      </fieldset>
      <TemplateField templates={templates} numbered onChoose={fill} />
      <label class="field">
        <span>{t(!choice ? 'reply.text' : required ? 'change-status.note-required' : 'change-status.note')}</span>
        <textarea
          rows={2}
          maxLength={2000}
          required={required || !choice}
          value={note}
          onInput={(e) => keepNote(report.id, e.currentTarget.value)}
        />
      </label>
      {finishes && (
        <div class="stack" role="group" aria-label={t('after')}>
          <Picker choice={photos} free={MAX_PHOTOS} hint={false} label={t('after')} />
          <small class="quiet">{t('after.hint')}</small>
        </div>
      )}
      <p class="quiet" role="status">
        {replied && !note && t('reply.sent')}
        {busy && finishes && photos.list.value.length > 0 && t('after.sending')}
      </p>
      {!stale && <Fault error={error} />}
      <button class="primary">{t(choice ? 'change-status.save' : 'reply.send')}</button>
    </form>
  );
}

interface TemplateProps {
  templates: Template[];
  /** Whether their keys are shown. */
  numbered?: boolean;
  onChoose(template: Template): void;
}

/** So many templates have a digit for their key. */
const KEYS = 9;

/** A list of templates to choose from; nothing where there are none. */
export function TemplateField({ templates, numbered = false, onChoose }: TemplateProps) {
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
        <Options of={templates.map(({ id, title }, i) => [id, numbered && i < KEYS ? `${i + 1} · ${title}` : title])} />
      </select>
    </label>
  );
}
