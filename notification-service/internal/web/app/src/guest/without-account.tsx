import { useEffect } from 'preact/hooks';

import { t } from '../lang/guest';
import { guestRules, loadGuestRules } from '../state/guests';
import { session } from '../state/session';
import { href } from '../ui/router';

/** The ways besides signing in; to a guest, the future of their reports. */
export function WithoutAccount({ to }: { to: string }) {
  useEffect(() => void loadGuestRules().catch(() => {}), []);
  if (session.value?.guest) return <p class="note">{t('guest.signing-in')}</p>;
  const open = guestRules.value?.open !== false;
  return (
    <section class="stack panel" aria-labelledby="without-account">
      <h2 id="without-account">{t('guest.or')}</h2>
      <p class="quiet">{t(open ? 'guest.or.hint' : 'guest.closed')}</p>
      <div class="bar">
        {open && (
          <a class="button" href={href(to.startsWith('new') ? to : 'new')}>
            {t('new.guest')}
          </a>
        )}
        <a class="button" href={href('sign-in/code')}>
          {t('guest.code.have')}
        </a>
      </div>
    </section>
  );
}
