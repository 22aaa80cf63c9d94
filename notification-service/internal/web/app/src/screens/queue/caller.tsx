import { useEffect, useState } from 'preact/hooks';

import { Failure, type Caller, type MailLanguage, type Work } from '../../api/client';
import { t } from '../../lang/queue';
import { config } from '../../state/config';
import { enterCaller, ofMails, readCaller } from '../../state/intake';
import { Fault } from '../../ui/problem';

interface FieldsProps {
  mail: string;
  language: MailLanguage;
  required?: boolean;
  onMail(typed: string): void;
  onLanguage(chosen: MailLanguage): void;
}

/** Where a caller is written to, and in which language. */
export function CallerFields({ mail, language, required = false, onMail, onLanguage }: FieldsProps) {
  return (
    <div class="bar">
      <label class="field">
        <span>{t('caller.mail')}</span>
        <input
          type="email"
          maxLength={254}
          autocomplete="off"
          required={required}
          value={mail}
          onInput={(event) => onMail(event.currentTarget.value.replace(/\p{Cf}/gu, ''))}
        />
      </label>
      <label class="field">
        <span>{t('caller.language')}</span>
        <select value={language} onChange={(event) => onLanguage(event.currentTarget.value === 'id' ? 'id' : 'en')}>
          <option value="id">Bahasa Indonesia</option>
          <option value="en">English</option>
        </select>
      </label>
    </div>
  );
}

/** How a report came that was filed for somebody, and whether they get mails. Nobody can read the address again. */
export function Intake({ id, intake }: { id: string; intake: NonNullable<Work['intake']> }) {
  const [caller, setCaller] = useState<Caller | null>();
  const [mail, setMail] = useState('');
  const [chosen, setChosen] = useState<MailLanguage>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (!config.mails) return;
    let latest = true;
    readCaller(id).then(
      (found) => latest && setCaller(found),
      (failure: unknown) => latest && (failure instanceof Failure && failure.problem?.status === 404 ? setCaller(null) : setError(failure)),
    );
    return () => {
      latest = false;
    };
  }, [id]);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      setCaller(await enterCaller(id, intake.caller, mail, chosen ?? caller?.language ?? ofMails()));
      setMail('');
      setError(undefined);
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  return (
    <section class="stack" aria-label={t('intake.about')}>
      <p class="meta">
        <strong>{t(`intake.source.${intake.source}`)}</strong>
        <span>{t('intake.by', { name: intake.entered_by.name })}</span>
        {caller !== undefined && <span role="status">{t(`caller.${caller?.state ?? 'none'}`)}</span>}
      </p>
      {intake.caller && (caller === null || caller?.state === 'unverified') && (
        <details>
          <summary>{t(caller ? 'caller.replace' : 'caller.add')}</summary>
          <form class="stack" onSubmit={submit} aria-busy={busy}>
            <p class="quiet">{t('caller.hint')}</p>
            <CallerFields required mail={mail} language={chosen ?? caller?.language ?? ofMails()} onMail={setMail} onLanguage={setChosen} />
            <button>{t('caller.do')}</button>
          </form>
        </details>
      )}
      <Fault error={error} />
    </section>
  );
}
