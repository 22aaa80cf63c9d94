import { useEffect, useState } from 'preact/hooks';

import { Failure, must, notificationService, type Device } from '../../api/client';
import { t } from '../../lang/settings';
import { addThisDevice, canBeNotified, checkDevice, forgetThisDevice, removeDevice, thisDevice } from '../../state/device';
import { toast } from '../../state/toasts';
import { Fault } from '../../ui/problem';
import { Time } from '../../ui/time';

interface Props {
  /** Absent until they are read. */
  devices: Device[] | undefined;
  onChange(devices: Device[]): void;
}

/** The browsers that the reader is notified on. The browser asks for permission when the reader turns notifications on, and not before. */
export function Devices({ devices, onChange }: Props) {
  const [can, setCan] = useState(canBeNotified);
  const [error, setError] = useState<unknown>();
  const attempt = async (work: () => Promise<void>) => {
    try {
      await work();
      setError(undefined);
    } catch (failure) {
      setError(failure);
    }
  };
  const read = async () => {
    // At another address than before it is another one of those that are read next.
    if (thisDevice.value && can === 'yes') await checkDevice().catch(() => {});
    const { devices: found } = await must(notificationService.GET('/me/push'));
    const here = found.some(({ id }) => id === thisDevice.value);
    onChange(found);
    if (!thisDevice.value || can !== 'yes') return;
    // It may have been removed from elsewhere; and if not, have another language now.
    await (here && Notification.permission === 'granted' ? addThisDevice() : forgetThisDevice()).catch(() => {});
  };
  useEffect(() => void attempt(read), []);

  const add = () =>
    attempt(async () => {
      const added = await addThisDevice();
      setCan(canBeNotified());
      if (!added) return;
      onChange([added, ...(devices ?? []).filter(({ id }) => id !== added.id)]);
      toast(t('devices.added'));
    });
  const remove = (gone: Device) =>
    attempt(async () => {
      await removeDevice(gone.id);
      onChange((devices ?? []).filter(({ id }) => id !== gone.id));
    });

  const here = devices?.some(({ id }) => id === thisDevice.value);
  return (
    <section class="panel stack" aria-labelledby="devices">
      <h2 id="devices">{t('devices')}</h2>
      <p class="quiet">{t('devices.hint')}</p>
      {devices && devices.length > 0 && (
        <ul class="rows">
          {devices.map((device) => (
            <li key={device.id}>
              <strong>{device.label}</strong>
              <span class="meta">
                {device.id === thisDevice.value && <span>{t('devices.this')}</span>}
                <span>
                  {t('devices.since')} <Time at={device.created_at} />
                </span>
                {device.last_used_at && (
                  <span>
                    {t('devices.used')} <Time at={device.last_used_at} />
                  </span>
                )}
                <button
                  type="button"
                  class="link"
                  aria-label={t('devices.remove-device', { device: device.label })}
                  onClick={() => void remove(device)}
                >
                  {t('devices.remove')}
                </button>
              </span>
            </li>
          ))}
        </ul>
      )}
      {can !== 'yes' && <p class="note">{t(`devices.${can}`)}</p>}
      {can === 'yes' && devices && !here && (
        <div class="bar">
          <button type="button" class="primary" onClick={() => void add()}>
            {t('devices.add')}
          </button>
        </div>
      )}
      {error instanceof Failure || !error ? (
        <Fault error={error} {...(!devices && { retry: () => void attempt(read) })} />
      ) : (
        <p class="fault" role="alert">
          {t('devices.failed')}
        </p>
      )}
    </section>
  );
}
