import { t } from '../../lang/privacy';
import { config } from '../../state/config';
import { draft, updateDraft } from '../../state/draft';
import { filesAsGuest, session } from '../../state/session';
import { FieldFault } from './field-fault';

const LEVELS = ['public', 'anonymous'] as const;
const READERS = ['everyone', 'you'] as const;

/** Whether the reporter is named, and whether only the city sees the report, with who sees what beside the choice. */
export function Privacy() {
  const { privacy_level, position, forCity = false, mail = false } = draft.value;
  const guest = filesAsGuest();
  const chosen = guest ? 'anonymous' : privacy_level;
  return (
    <fieldset class="bare">
      <legend class="hidden">{t('privacy')}</legend>
      {guest && (
        <p class="note">
          {t('privacy.guest')} {t('privacy.guest-named')}
        </p>
      )}
      <div class="options">
        {(guest ? [] : LEVELS).map((level) => (
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
      <label class="option">
        <input type="checkbox" checked={forCity} onChange={() => updateDraft({ forCity: !forCity })} />
        <span>
          <strong>{t('privacy.private')}</strong>
          <small>{t('privacy.private.hint')}</small>
        </span>
      </label>
      <div id="who-sees-what" class="who-sees" aria-live="polite">
        <p>
          <strong>{t('privacy.who-sees')}</strong>
        </p>
        {chosen ? (
          <dl>
            {READERS.map((reader) => (
              <div key={reader}>
                <dt>{t(forCity && reader === 'everyone' ? 'privacy.reader.city' : `privacy.reader.${reader}`)}</dt>
                <dd>{t(`privacy.${chosen}.${reader}`)}</dd>
              </div>
            ))}
          </dl>
        ) : (
          <p>{t(forCity ? 'fault.privacy_level' : 'privacy.choose')}</p>
        )}
        {chosen === 'anonymous' && position && !forCity && <p>{t('privacy.place')}</p>}
      </div>
      {chosen === 'anonymous' && (config.mails || config.push) && (session.value || !guest) && (
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
