import { useEffect, useState } from 'preact/hooks';

import { Failure, type Caller, type Work } from '../../api/client';
import { languages, t } from '../../lang/queue';
import { config } from '../../state/config';
import { enterCaller, ofMails, readCaller } from '../../state/intake';
import { useAct } from '../../ui/act';
import { Choice, Field } from '../../ui/field';
import { Fault } from '../../ui/problem';

interface FieldsProps {
  mail: string;
  language: string;
  required?: boolean;
  onMail(typed: string): void;
  onLanguage(chosen: string): void;
}

/** Where a caller is written to, and in which language. */
export function CallerFields({ mail, language, required = false, onMail, onLanguage }: FieldsProps) {
  return (
    <div class="bar">
      <Field
        label={t('caller.mail')}
        type="email"
        maxLength={254}
        autocomplete="off"
        required={required}
        value={mail}
        onValue={(typed) => onMail(typed.replace(/\p{Cf}/gu, ''))}
      />
      <Choice label={t('caller.language')} value={language} options={Object.entries(languages())} onValue={onLanguage} />
    </div>
  );
}

/** How a report came that was filed for somebody, and whether they get mails. Nobody can read the address again. */
export function Intake({ id, intake }: { id: string; intake: NonNullable<Work['intake']> }) {
  const [caller, setCaller] = useState<Caller | null>();
  const [mail, setMail] = useState('');
  const [chosen, setChosen] = useState<string>();
  const { busy, error, setError, submits } = useAct();
  useEffect(() => {
    if (!config.mails) return;
    let latest = true;
    readCaller(id, intake.caller).then(
      (found) => latest && setCaller(found),
      (failure: unknown) => latest && (failure instanceof Failure && failure.problem?.status === 404 ? setCaller(null) : setError(failure)),
    );
    return () => {
      latest = false;
    };
  }, [id, intake.caller]);
  const submit = submits(async () => {
    setCaller(await enterCaller(id, intake.caller, mail, chosen ?? caller?.language ?? ofMails()));
    setMail('');
  });
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
