import { t } from '../lang/i18n';
import { config } from '../state/config';
import { Phone } from '../ui/phones';

/** The city's links, in the order of the footer. */
export const LINKS = ['contact', 'privacy', 'terms', 'imprint', 'accessibility'] as const;

/** Where the city says what it has to say, and whom to call in an emergency; nothing where it has set none of it. */
export function Footer() {
  const links = config.city?.links ?? {};
  if (!Object.values(links).some(Boolean)) return null;
  return (
    <footer class="foot">
      <nav aria-label={t('city.links')}>
        {LINKS.map(
          (name) =>
            links[name] && (
              <a key={name} href={links[name]}>
                {t(`city.${name}`)}
              </a>
            ),
        )}
        <a href="/docs/">API</a>
      </nav>
      {links.emergency && (
        <span>
          {t('city.emergency')}: <Phone number={links.emergency} />
        </span>
      )}
    </footer>
  );
}
