import { useState } from 'preact/hooks';

import { languages, language, preferredLanguage, setLanguage, t } from '../lang/i18n';
import { announceChange } from '../live/live';
import { config } from '../state/config';
import { preferences, type Theme } from '../state/preferences';
import { closeSession, session } from '../state/session';
import { lazily } from '../ui/lazily';
import { Modal } from '../ui/modal';
import { Fault } from '../ui/problem';
import { here, href } from '../ui/router';

const GuestAccount = lazily(async () => (await import('../guest/account')).GuestAccount, true);

const THEMES: Theme[] = ['auto', 'light', 'dark'];

/** The account, the language and the appearance. */
export function Menu({ onClose }: { onClose(): void }) {
  return (
    <Modal title={t('menu')} onClose={onClose}>
      <Account onClose={onClose} />
      <Language />
      <Appearance />
    </Modal>
  );
}

export async function signOut(): Promise<void> {
  // Pushes to this browser are for this user alone. The session ends even if removing them fails.
  if (config.push) await import('../state/device').then(({ leaveDevice }) => leaveDevice()).catch(() => {});
  await closeSession();
  announceChange('session');
  location.replace('/');
}

function Account({ onClose }: { onClose(): void }) {
  const [error, setError] = useState<unknown>();
  const who = session.value;
  if (!who) {
    return (
      <a class="button primary" href={href('sign-in', { to: here() })} onClick={onClose}>
        {t('sign-in')}
      </a>
    );
  }
  const end = () => signOut().catch(setError);
  if (who.guest) return <GuestAccount error={error} onEnd={end} onClose={onClose} />;
  return (
    <div class="bar">
      <span>
        <strong>{who.name || who.sub}</strong>
        <br />
        <span class="quiet">{t(`role.${who.role}`)}</span>
      </span>
      <a class="button" href={href('settings')} onClick={onClose}>
        {t('settings')}
      </a>
      <button type="button" onClick={end}>
        {t('sign-out')}
      </button>
      <Fault error={error} />
    </div>
  );
}

function Language() {
  return (
    <label class="field">
      <span>{t('language')}</span>
      <select
        value={language.value}
        onChange={(event) => {
          preferences.language.value = event.currentTarget.value;
          void setLanguage(preferredLanguage());
        }}
      >
        {Object.entries(languages()).map(([tag, name]) => (
          <option key={tag} value={tag} lang={tag}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function Appearance() {
  return (
    <fieldset class="choices">
      <legend>{t('theme')}</legend>
      {THEMES.map((theme) => (
        <label key={theme} class="chip">
          <input type="radio" name="theme" checked={preferences.theme.value === theme} onChange={() => (preferences.theme.value = theme)} />
          <span>{t(`theme.${theme}`)}</span>
        </label>
      ))}
    </fieldset>
  );
}
