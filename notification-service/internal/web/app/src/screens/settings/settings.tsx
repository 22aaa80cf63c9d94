import { useEffect, useState } from 'preact/hooks';

import { Failure, must, notificationService, type Contact } from '../../api/client';
import { t } from '../../lang/i18n';
import { config } from '../../state/config';
import { Fault } from '../../ui/problem';
import { NoPage } from '../no-page';
import { Address } from './address';
import { AtOnce } from './at-once';
import { Summary } from './summary';

/** Where, about what and when one is written to. Nothing is sent until it is asked for here. */
export function SettingsScreen() {
  // Absent until it is read; null is no address.
  const [contact, setContact] = useState<Contact | null>();
  const [error, setError] = useState<unknown>();
  const load = () =>
    readContact().then((found) => {
      setContact(found);
      setError(undefined);
    }, setError);
  useEffect(() => {
    if (config.mails) void load();
  }, []);
  if (!config.mails) return <NoPage title="no-page" text="settings.no-mails" />;
  return (
    <div class="narrow">
      <h1 tabIndex={-1}>{t('settings')}</h1>
      <p class="quiet">{t('settings.off')}</p>
      <Fault error={error} retry={load} />
      {contact !== undefined && <Address contact={contact} onChange={setContact} />}
      {contact?.state === 'active' && (
        <>
          <AtOnce />
          <Summary zone={contact.zone} />
        </>
      )}
    </div>
  );
}

/** The server's word for "none" is 404. */
async function readContact(): Promise<Contact | null> {
  try {
    return await must(notificationService.GET('/me/contact'));
  } catch (error) {
    if (error instanceof Failure && error.kind === 'not-found') return null;
    throw error;
  }
}
