import type { ComponentChildren } from 'preact';

import { t } from '../../lang/console';
import { config } from '../../state/config';
import { LINKS } from '../../shell/footer';
import { Phone } from '../../ui/phones';
import { languageName } from './categories/fields';

/** The settings of the city, by variable, and those that are not set. */
export function City() {
  const { name, languages = [], logo, links = {} } = config.city ?? {};
  return (
    <div class="stack narrow">
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
