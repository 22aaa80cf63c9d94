import { useEffect } from 'preact/hooks';

import { Failure } from '../../api/client';
import { t } from '../../lang/i18n';
import { categories } from '../../state/categories';
import { discardDraft, draft, draftError, fileDraft, updateDraft } from '../../state/draft';
import { toast } from '../../state/toasts';
import { Fault } from '../../ui/problem';
import { go, href } from '../../ui/router';
import { Duplicates } from './duplicates';
import { Place } from './place';
import { Privacy } from './privacy';

/** How soon a report without an answer is sent again. */
const RESEND_MS = 5_000;

async function send(): Promise<void> {
  const report = await fileDraft();
  if (!report) return;
  toast(t('new.filed'), href(`reports/${report.id}`));
  go(`reports/${report.id}`);
}

/** Files a report. What is typed survives a reload and a lost connection. */
export function CreateScreen() {
  const { title, description, category_id, sending } = draft.value;
  const error = draftError.value;
  useEffect(() => resendUntilAnswered(), []);
  return (
    <div class="narrow">
      <h1 tabIndex={-1}>{t('new')}</h1>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <fieldset class="bare" disabled={sending}>
          <label class="field">
            <span>{t('category')}</span>
            <select required value={category_id ?? ''} onChange={(e) => updateDraft({ category_id: Number(e.currentTarget.value) })}>
              <option value="" disabled>
                {t('category.choose')}
              </option>
              {categories.value.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </select>
            <FieldFault pointer="/category_id" />
          </label>
          <Place />
          <Duplicates />
          <label class="field">
            <span>{t('new.title')}</span>
            <input
              required
              maxLength={200}
              pattern=".*\S.*"
              title={t('new.title-hint')}
              value={title}
              onInput={(e) => updateDraft({ title: e.currentTarget.value })}
            />
            <small>{t('new.title-hint')}</small>
            <FieldFault pointer="/title" />
          </label>
          <label class="field">
            <span>{t('new.description')}</span>
            <textarea rows={5} maxLength={4000} value={description} onInput={(e) => updateDraft({ description: e.currentTarget.value })} />
            <FieldFault pointer="/description" />
          </label>
          <Privacy />
        </fieldset>
        <Outcome sending={sending} error={error} />
        <div class="bar">
          <button class="primary" disabled={sending && !error}>
            {t(sending ? 'new.again' : 'new.file')}
          </button>
          <button type="button" class="link" onClick={sending ? () => updateDraft({ sending: false }) : discardDraft}>
            {t(sending ? 'new.edit' : 'new.discard')}
          </button>
        </div>
        <small class="quiet">{t('new.kept')}</small>
      </form>
    </div>
  );
}

/** The result of sending; a report that was filed before it was edited is among the user's own. */
function Outcome({ sending, error }: { sending: boolean; error: unknown }) {
  if (error instanceof Failure && error.kind === 'idempotency-key-reused') {
    return (
      <p class="note" role="alert">
        {t('new.filed-before')} <a href={href('mine')}>{t('mine')}</a>
      </p>
    );
  }
  if (sending) {
    return (
      <p class="note" role="status">
        {t(error ? 'new.waiting' : 'new.sending')}
      </p>
    );
  }
  return <Fault error={error} />;
}

function FieldFault({ pointer }: { pointer: string }) {
  const error = draftError.value;
  const fault = error instanceof Failure ? error.fault(pointer) : undefined;
  return fault ? <small class="fault">{fault}</small> : null;
}

/** Sends a report again that had no answer, also after a reload. */
function resendUntilAnswered(): () => void {
  const again = () => draft.value.sending && navigator.onLine && void send();
  again();
  window.addEventListener('online', again);
  const timer = setInterval(again, RESEND_MS);
  return () => {
    clearInterval(timer);
    window.removeEventListener('online', again);
  };
}
