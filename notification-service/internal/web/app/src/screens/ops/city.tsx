import type { ComponentChildren } from 'preact';

import { must, notificationService, type Appearance } from '../../api/client';
import { t } from '../../lang/console';
import { LINKS } from '../../shell/footer';
import { cityName, config } from '../../state/config';
import { createEdited, useEdited } from '../../state/setting';
import { Field, Lines } from '../../ui/field';
import { Phone } from '../../ui/phones';
import { languageName } from './categories/fields';
import { SettingForm } from './setting-form';
import { Waiting } from './waiting';

/** The settings of the city, by variable, and those that are not set. */
export function City() {
  const { name, languages = [], logo, links = {} } = config.city ?? {};
  return (
    <div class="stack narrow">
      <Looks />
      <h3>{t('city.variables')}</h3>
      <p class="quiet">{t('city.hint')}</p>
      <dl class="city panel">
        <Setting name={t('city.name')} variable="CITY_NAME">
          {name}
        </Setting>
        <Setting name={t('city.languages')} variable="CITY_LANGUAGES">
          {languages.map(languageName).join(', ')}
        </Setting>
        <Setting name={t('city.logo')} variable="CITY_LOGO">
          {logo && <img src={logo} alt="" height="48" />}
        </Setting>
        {LINKS.map((link) => (
          <Setting key={link} name={t(`city.${link}`)} variable={`CITY_LINKS: ${link}`}>
            {links[link] && <a href={links[link]}>{links[link]}</a>}
          </Setting>
        ))}
        <Setting name={t('city.emergency')} variable="CITY_LINKS: emergency">
          {links.emergency && <Phone number={links.emergency} />}
        </Setting>
      </dl>
    </div>
  );
}

const edited = createEdited<Appearance>(() => must(notificationService.GET('/admin/appearance')));

function put({ revision, colour, words }: Appearance): Promise<Appearance> {
  const params = { header: { 'If-Match': `"${revision}"` } };
  const trimmed = words.map((each) => ({ ...each, greeting: each.greeting.trim(), signature: each.signature.trim() }));
  return must(notificationService.PUT('/admin/appearance', { params, body: { colour, words: trimmed } }));
}

/** A text field starts with this where the city has no colour. */
const PLAIN = '#0b6b62';

/** The city's colour, and the words around its mails, with a mail as it will be. */
function Looks() {
  useEdited(edited);
  const look = edited.value.value;
  if (!look) return <Waiting error={edited.error.value} retry={() => void edited.load()} />;
  const { colour, words, tones } = look;
  const write = (language: string, part: Partial<Appearance['words'][number]>) =>
    edited.set({ ...look, words: words.map((each) => (each.language === language ? { ...each, ...part } : each)) });
  return (
    <SettingForm edited={edited} put={put} save={t('city.save')} saved={t('city.saved')}>
      <fieldset class="panel bare">
        <legend class="hidden">{t('city.colour')}</legend>
        <label class="field">
          <span>{t('city.colour')}</span>
          <small>{t('city.colour-hint')}</small>
          <input
            type="color"
            value={colour || PLAIN}
            onInput={(event) => edited.set({ ...look, colour: event.currentTarget.value.toLowerCase() })}
          />
        </label>
        <p class="bar">
          {tones.map(({ accent, on_accent }, i) => (
            <span key={i} class="tone" style={{ background: accent, color: on_accent }}>
              {t(i === 0 ? 'theme.light' : 'theme.dark')} {accent}
            </span>
          ))}
          {colour && (
            <button type="button" class="link" onClick={() => edited.set({ ...look, colour: '' })}>
              {t('city.no-colour')}
            </button>
          )}
        </p>
      </fieldset>
      {config.mails &&
        words.map(({ language, greeting, signature }) => (
          <fieldset key={language} class="panel bare">
            <legend>{t('city.mails', { language: languageName(language) })}</legend>
            <Field
              label={t('city.greeting')}
              maxLength={120}
              lang={language}
              value={greeting}
              onValue={(greeting) => write(language, { greeting })}
            />
            <Lines
              label={t('city.signature')}
              rows={3}
              maxLength={500}
              lang={language}
              value={signature}
              onValue={(signature) => write(language, { signature })}
            />
            <figure class="mail" lang={language}>
              <figcaption class="quiet">{t('city.preview')}</figcaption>
              <strong style={{ color: tones[0]?.accent }}>{cityName()}</strong>
              {greeting.trim() && <p>{greeting}</p>}
              <p class="quiet">{t('city.mail-text')}</p>
              {signature.trim() && <p class="story">{signature}</p>}
            </figure>
          </fieldset>
        ))}
    </SettingForm>
  );
}

function Setting({ name, variable, children }: { name: string; variable: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>
        {name} <code>{variable}</code>
      </dt>
      <dd>{children || <span class="quiet">{t('city.missing')}</span>}</dd>
    </div>
  );
}
