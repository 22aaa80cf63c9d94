import { useEffect, useState } from 'preact/hooks';

import { must, reportService, type HistoryEntry, type Report, type ReportVisibility, type Work } from '../api/client';
import { t } from '../lang/moderation';
import { Reason } from '../screens/ops/reason';
import { moderates } from '../state/scope';
import { useAct } from '../ui/act';
import { Field, Lines } from '../ui/field';
import { Modal } from '../ui/modal';
import { Fault } from '../ui/problem';
import { Skeleton } from '../ui/skeleton';
import { Time } from '../ui/time';

interface Props {
  /** The report, as whatever shows it has it. */
  report: { id: string; title: string; visibility: Report['visibility']; hidden_reason?: string; withdrawn_at?: string };
  /** Whether officials have restricted it: only then it may become public again. */
  restricted?: boolean | undefined;
  onDone(work: Work): void;
}

/** That a report is hidden, and the acts of moderators on what others see of it: hide it, show it again, show it to the city alone, redact its words. */
export function Moderation({ report: { id, visibility, hidden_reason, withdrawn_at }, restricted, onDone }: Props) {
  const [dialog, setDialog] = useState<'hide' | 'redact' | 'restrict'>();
  const [error, setError] = useState<unknown>();
  const params = { path: { id } };
  const hide = async (reason: string) => onDone(await must(reportService.PUT('/reports/{id}/hidden', { params, body: { reason } })));
  const done = (work: Work) => {
    setError(undefined);
    onDone(work);
  };
  const show = () => must(reportService.DELETE('/reports/{id}/hidden', { params })).then(done, setError);
  const setVisibility = (body: ReportVisibility) => must(reportService.PUT('/reports/{id}/visibility', { params, body }));
  return (
    <div class="stack">
      {hidden_reason && (
        <p class="note" role="status">
          {withdrawn_at ? t('report.withdrawn') : t('moderation.is-hidden', { reason: hidden_reason })}
        </p>
      )}
      {moderates() && (
        <p class="bar">
          {withdrawn_at ? undefined : hidden_reason ? (
            <button type="button" onClick={() => void show()}>
              {t('moderation.show')}
            </button>
          ) : (
            <button type="button" class="danger-quiet" aria-haspopup="dialog" onClick={() => setDialog('hide')}>
              {t('moderation.hide')}
            </button>
          )}
          {!hidden_reason && visibility === 'public' && (
            <button type="button" class="danger-quiet" aria-haspopup="dialog" onClick={() => setDialog('restrict')}>
              {t('moderation.restrict')}
            </button>
          )}
          {restricted && !withdrawn_at && (
            <button type="button" onClick={() => void setVisibility({ visibility: 'public' }).then(done, setError)}>
              {t('moderation.publish')}
            </button>
          )}
          <button type="button" aria-haspopup="dialog" onClick={() => setDialog('redact')}>
            {t('moderation.redact')}
          </button>
        </p>
      )}
      <Fault error={error} />
      {dialog === 'hide' && (
        <Reason title={t('moderation.hide')} hint={t('moderation.hide-hint')} onSubmit={hide} onClose={() => setDialog(undefined)} />
      )}
      {dialog === 'restrict' && (
        <Reason
          title={t('moderation.restrict')}
          hint={t('moderation.restrict-hint')}
          onSubmit={(reason) => setVisibility({ visibility: 'officials', reason }).then(done)}
          onClose={() => setDialog(undefined)}
        />
      )}
      {dialog === 'redact' && <Redaction id={id} onDone={onDone} onClose={() => setDialog(undefined)} />}
    </div>
  );
}

interface Words {
  report: Report;
  /** The entries of the history that have a note. */
  notes: HistoryEntry[];
}

/** Puts other words in the place of those that nobody is to read. */
function Redaction({ id, onDone, onClose }: { id: string; onDone(work: Work): void; onClose(): void }) {
  const [words, setWords] = useState<Words>();
  const { error, run } = useAct();
  const params = { path: { id } };
  const load = () =>
    run(async () => {
      const [report, { history }] = await Promise.all([
        must(reportService.GET('/reports/{id}', { params })),
        must(reportService.GET('/reports/{id}/history', { params })),
      ]);
      setWords({ report, notes: history.filter(({ note }) => note !== '') });
    });
  useEffect(() => void load(), [id]);
  return (
    <Modal title={t('moderation.redact')} onClose={onClose}>
      <p class="quiet">{t('moderation.redact-hint')}</p>
      <Fault error={error} retry={() => void load()} />
      {words ? <RedactionForm words={words} onDone={onDone} onClose={onClose} /> : !error && <Skeleton />}
    </Modal>
  );
}

function RedactionForm({ words: { report, notes }, onDone, onClose }: { words: Words; onDone(work: Work): void; onClose(): void }) {
  const [title, setTitle] = useState(report.title);
  const [description, setDescription] = useState(report.description);
  const [changed, setChanged] = useState<Record<number, string>>({});
  const [reason, setReason] = useState('');
  const { busy, error, submits } = useAct();
  const rewritten = notes.flatMap(({ version, note }) => {
    const now = changed[version]?.trim();
    return now === undefined || now === note ? [] : [{ version, note: now }];
  });
  const same = title.trim() === report.title && description.trim() === report.description && rewritten.length === 0;
  const submit = submits(async () => {
    if (same) return;
    const params = { path: { id: report.id }, header: { 'If-Match': `"${report.version}"` } };
    const body = {
      reason: reason.trim(),
      ...(title.trim() !== report.title && { title: title.trim() }),
      ...(description.trim() !== report.description && { description: description.trim() }),
      ...(rewritten.length > 0 && { notes: rewritten }),
    };
    onDone(await must(reportService.PATCH('/reports/{id}/words', { params, body })));
    onClose();
  });
  return (
    <form class="stack" onSubmit={submit} aria-busy={busy}>
      <Field label={t('moderation.title')} data-first required maxLength={200} value={title} onValue={setTitle} />
      <Lines label={t('moderation.description')} rows={5} maxLength={4000} value={description} onValue={setDescription} />
      {notes.map(({ version, note, changed_at }) => (
        <label key={version} class="field">
          <span>
            {t('moderation.note')} <Time at={changed_at} full />
          </span>
          <textarea
            rows={2}
            maxLength={2000}
            value={changed[version] ?? note}
            onInput={(e) => setChanged({ ...changed, [version]: e.currentTarget.value })}
          />
        </label>
      ))}
      <label class="field">
        <span>{t('reason')}</span>
        <small>{t('moderation.reason-hint')}</small>
        <input required maxLength={500} pattern=".*\S.*" value={reason} onInput={(e) => setReason(e.currentTarget.value)} />
      </label>
      <Fault error={error} />
      <button class="primary" disabled={same}>
        {t('moderation.redact-do')}
      </button>
    </form>
  );
}
