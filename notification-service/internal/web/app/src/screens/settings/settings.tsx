import { useEffect, useState } from 'preact/hooks';

import type { Contact, Device } from '../../api/client';
import { t } from '../../lang/settings';
import { TakeWithYou } from '../../guest/take-with-you';
import { config } from '../../state/config';
import { readContact } from '../../state/notify';
import { session } from '../../state/session';
import { Fault } from '../../ui/problem';
import { Skeleton } from '../../ui/skeleton';
import { Address } from './address';
import { AtOnce } from './at-once';
import { Devices } from './devices';
import { EraseAccount } from './erase';
import { OwnData } from './own-data';
import { Summary } from './summary';

/** Where, about what and when one is written to or notified, and what is held of one. Nothing is sent until it is asked for here. */
export function SettingsScreen() {
  // Absent until it is read; null without an address.
  const [contact, setContact] = useState<Contact | null>();
  const [devices, setDevices] = useState<Device[]>();
  const [error, setError] = useState<unknown>();
  const load = () =>
    readContact().then((found) => {
      setContact(found);
      setError(undefined);
    }, setError);
  useEffect(() => {
    if (config.mails) void load();
  }, []);
  const mails = contact?.state === 'active';
  const notified = devices !== undefined && devices.length > 0;
  return (
    <div class="narrow">
      <h1 tabIndex={-1}>{t('settings')}</h1>
      {session.value?.guest && <TakeWithYou />}
      {(config.mails || config.push) && <p class="quiet">{t('settings.off')}</p>}
      <Fault error={error} retry={load} />
      {config.mails && contact === undefined && !error && <Skeleton />}
      {contact !== undefined && <Address contact={contact} onChange={setContact} />}
      {config.push && <Devices devices={devices} onChange={setDevices} />}
      {/* With the first device the server has chosen something. */}
      {(mails || notified) && <AtOnce key={String(notified)} mails={mails} devices={notified} />}
      {mails && <Summary zone={contact.zone} />}
      <OwnData />
      {session.value?.role === 'resident' && <EraseAccount />}
      <p class="quiet">
        <a href="/docs/">{t('settings.api')}</a>
      </p>
    </div>
  );
}
