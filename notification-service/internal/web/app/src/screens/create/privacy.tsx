import { t } from '../../lang/i18n';
import { config } from '../../state/config';
import { draft, updateDraft } from '../../state/draft';
import { FieldFault } from './field-fault';

const LEVELS = ['public', 'anonymous'] as const;
const READERS = ['everyone', 'you'] as const;

/** Whether the reporter is named, with who sees what beside the choice. */
export function Privacy() {
  const { privacy_level: chosen, position, mail = false } = draft.value;
  return (
    <fieldset class="bare">
      <legend class="hidden">{t('privacy')}</legend>
      <div class="options">
        {LEVELS.map((level) => (
          <label key={level} class="option">
            <input
              type="radio"
              name="privacy"
              required
              checked={chosen === level}
              onChange={() => updateDraft({ privacy_level: level })}
              aria-describedby="who-sees-what"
            />
            <span>
              <strong>{t(`privacy.${level}`)}</strong>
              <small>{t(`privacy.${level}.hint`)}</small>
            </span>
          </label>
        ))}
      </div>
      <FieldFault pointers={['/privacy_level']} />
      <div id="who-sees-what" class="who-sees" aria-live="polite">
        <p>
          <strong>{t('privacy.who-sees')}</strong>
        </p>
        {chosen ? (
          <dl>
            {READERS.map((reader) => (
              <div key={reader}>
                <dt>{t(`privacy.reader.${reader}`)}</dt>
                <dd>{t(`privacy.${chosen}.${reader}`)}</dd>
              </div>
            ))}
          </dl>
        ) : (
          <p>{t('privacy.choose')}</p>
        )}
        {chosen === 'anonymous' && position && <p>{t('privacy.place')}</p>}
      </div>
      {chosen === 'anonymous' && (config.mails || config.push) && (
        <label class="option">
          <input type="checkbox" checked={mail} onChange={() => updateDraft({ mail: !mail })} />
          <span>
            <strong>{t('privacy.mail')}</strong>
            <small>{t('privacy.mail.hint')}</small>
          </span>
        </label>
      )}
    </fieldset>
  );
}
