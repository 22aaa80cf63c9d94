import { useEffect, useMemo, useState } from 'preact/hooks';

import { t } from '../../lang/queue';
import { createChoice, MAX_PHOTOS, ofDraft } from '../../photos/choice';
import { Picker } from '../../photos/picker';
import { categories } from '../../state/categories';
import { config } from '../../state/config';
import { SOURCES } from '../../state/filters';
import { fileIntake, intake, updateIntake } from '../../state/intake';
import { WithPhones } from '../../ui/phones';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { CallerFields } from './caller';
import { PlaceFields } from './place';

interface Props {
  onFiled(id: string): void;
  onClose(): void;
}

/** Files a report for somebody, in one form: it is filled in while they speak. */
export function IntakeDialog({ onFiled, onClose }: Props) {
  const { key, source, title, description, category, position, address, forCity, mail, language } = intake.value;
  const [mapped, setMapped] = useState(position !== undefined);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const instead = categories.value.find(({ id, accepts_reports }) => id === category && !accepts_reports);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy || instead) return;
    setBusy(true);
    try {
      onFiled(await fileIntake());
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <Modal title={t('intake')} onClose={onClose}>
      <form
        class="stack"
        onSubmit={submit}
        aria-busy={busy}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
        }}
      >
        <p class="quiet">{t('intake.hint')}</p>
        <label class="field">
          <span>{t('intake.source')}</span>
          <select
            value={source}
            onChange={({ currentTarget: { value } }) => updateIntake({ source: SOURCES.find((each) => each === value) ?? source })}
          >
            {SOURCES.map((each) => (
              <option key={each} value={each}>
                {t(`intake.source.${each}`)}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>{t('category')}</span>
          <select
            data-first
            required
            value={category ?? ''}
            onChange={(event) => updateIntake({ category: Number(event.currentTarget.value) })}
          >
            <option value="" disabled>
              {t('intake.choose')}
            </option>
            {categories.value
              .filter(({ retired }) => !retired)
              .map(({ id, name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
          </select>
        </label>
        {instead && (
          <p class="note" role="status">
            <strong>{t('category.signpost')}</strong> <WithPhones text={instead.hint} />
          </p>
        )}
        <label class="field">
          <span>{t('new.title')}</span>
          <input
            required
            maxLength={200}
            pattern=".*\S.*"
            title={t('new.title-hint')}
            value={title}
            onInput={(event) => updateIntake({ title: event.currentTarget.value })}
          />
        </label>
        <label class="field">
          <span>{t('new.description')}</span>
          <textarea
            rows={3}
            maxLength={4000}
            value={description}
            onInput={(event) => updateIntake({ description: event.currentTarget.value })}
          />
        </label>
        {mapped ? (
          <PlaceFields
            address={address}
            position={position}
            start={position}
            onAddress={(typed) => updateIntake({ address: typed })}
            onPosition={(picked) => updateIntake({ position: picked })}
          />
        ) : (
          <div class="bar">
            <label class="field">
              <span>{t('correct.address')}</span>
              <input maxLength={300} value={address} onInput={(event) => updateIntake({ address: event.currentTarget.value })} />
            </label>
            <button type="button" onClick={() => setMapped(true)}>
              {t('intake.map')}
            </button>
          </div>
        )}
        {config.photos && <Photos place={ofDraft(key)} />}
        <label class="check">
          <input type="checkbox" checked={forCity} onChange={() => updateIntake({ forCity: !forCity })} />
          {t('intake.private')}
        </label>
        {config.mails && (
          <CallerFields
            mail={mail}
            language={language}
            onMail={(typed) => updateIntake({ mail: typed })}
            onLanguage={(chosen) => updateIntake({ language: chosen })}
          />
        )}
        <Fault error={error} />
        <button class="primary" disabled={instead !== undefined}>
          {t('intake.do')}
        </button>
      </form>
    </Modal>
  );
}

/** The report that somebody brings to the counter. */
function Photos({ place }: { place: string }) {
  const choice = useMemo(() => createChoice(place), [place]);
  useEffect(() => choice.open(), [choice]);
  return (
    <fieldset class="choices">
      <legend>{t('new.photos')}</legend>
      <Picker choice={choice} free={MAX_PHOTOS} hint={false} />
    </fieldset>
  );
}
