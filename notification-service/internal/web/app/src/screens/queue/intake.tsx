import { useEffect, useMemo, useState } from 'preact/hooks';

import { t } from '../../lang/queue';
import { createChoice, MAX_PHOTOS, ofDraft } from '../../photos/choice';
import { Picker } from '../../photos/picker';
import { categories, inUse } from '../../state/categories';
import { config } from '../../state/config';
import { SOURCES } from '../../state/filters';
import { fileIntake, intake, updateIntake } from '../../state/intake';
import { useAct } from '../../ui/act';
import { Choice, Field, Lines } from '../../ui/field';
import { WithPhones } from '../../ui/phones';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { CallerFields } from './caller';
import { PlaceFields } from '../../map/place-fields';

interface Props {
  onFiled(id: string): void;
  onClose(): void;
}

/** Files a report for somebody, in one form: it is filled in while they speak. */
export function IntakeDialog({ onFiled, onClose }: Props) {
  const { key, source, title, description, category, position, address, thing, forCity, mail, language } = intake.value;
  const [mapped, setMapped] = useState(position !== undefined);
  const { busy, error, submits } = useAct();
  const instead = categories.value.find(({ id, accepts_reports }) => id === category && !accepts_reports);
  const submit = submits(async () => {
    if (instead) return;
    onFiled(await fileIntake());
    onClose();
  });
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
        <Choice
          label={t('intake.source')}
          value={source}
          options={SOURCES.map((each) => [each, t(`intake.source.${each}`)])}
          onValue={(value) => updateIntake({ source: SOURCES.find((each) => each === value) ?? source })}
        />
        <Choice
          label={t('category')}
          data-first
          required
          value={category ?? ''}
          none={t('intake.choose')}
          options={inUse.value.map(({ id, name }) => [id, name])}
          onValue={(id) => updateIntake({ category: Number(id) || undefined })}
        />
        {instead && (
          <p class="note" role="status">
            <strong>{t('category.signpost')}</strong> <WithPhones text={instead.hint} />
          </p>
        )}
        <Field
          label={t('new.title')}
          required
          maxLength={200}
          title={t('new.title-hint')}
          value={title}
          onValue={(title) => updateIntake({ title })}
        />
        <Lines
          label={t('new.description')}
          rows={3}
          maxLength={4000}
          value={description}
          onValue={(description) => updateIntake({ description })}
        />
        {mapped ? (
          <PlaceFields
            place={{ address, position, thing }}
            start={position}
            onPlace={(part) => updateIntake({ ...part, ...(category === undefined && part.thing && { category: part.thing.category_id }) })}
          />
        ) : (
          <div class="bar">
            <Field label={t('correct.address')} maxLength={300} value={address} onValue={(address) => updateIntake({ address })} />
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
