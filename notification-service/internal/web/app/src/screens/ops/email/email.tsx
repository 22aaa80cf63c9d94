import { must, notificationService, type EmailStatus } from '../../../api/client';
import { number, t, tn } from '../../../lang/console';
import { Fault } from '../../../ui/problem';
import { usePoll } from '../../../ui/poll';
import { exactTime, Time } from '../../../ui/time';

/** The mails that wait for each host, and what came back. */
export function Email() {
  const status = usePoll(() => must(notificationService.GET('/admin/email')));
  return (
    <div class="stack">
      <Fault error={status.error} retry={status.refresh} />
      {status.value && (
        <>
          <section class="stack" aria-labelledby="mail-hosts">
            <h2 id="mail-hosts">{t('email.hosts')}</h2>
            {status.value.lanes.length === 0 && <p class="empty">{t('email.none')}</p>}
            <ul class="rows">
              {status.value.lanes.map((lane) => (
                <Host key={lane.lane} lane={lane} />
              ))}
            </ul>
          </section>
          <section class="stack" aria-labelledby="mail-bounces">
            <h2 id="mail-bounces">{t('email.bounces')}</h2>
            {status.value.bounces.length === 0 && <p class="empty">{t('email.no-bounces')}</p>}
            <ul class="rows">
              {status.value.bounces.map(({ lane, code, hard, count }) => (
                <li key={`${lane} ${code} ${hard}`}>
                  <div>
                    <strong>{code === 'complaint' ? t('email.complaint') : code}</strong>
                    <p class="meta">
                      <span>{lane}</span>
                      <span>{tn('email.bounced', count)}</span>
                      {hard && <span>{t('email.hard')}</span>}
                    </p>
                  </div>
                </li>
              ))}
            </ul>
          </section>
        </>
      )}
    </div>
  );
}

function Host({ lane }: { lane: EmailStatus['lanes'][number] }) {
  return (
    <li>
      <div>
        <strong>{lane.lane}</strong>
        <p class="meta">
          <span>{tn('email.waiting', lane.waiting)}</span>
          {lane.oldest_due_at && (
            <span>
              {t('email.oldest')} <Time at={lane.oldest_due_at} />
            </span>
          )}
          {!!lane.rate && <span>{t('email.rate', { rate: number(Math.round(lane.rate * 10) / 10) })}</span>}
          {lane.last_success_at && (
            <span>
              {t('email.last-success')} <Time at={lane.last_success_at} />
            </span>
          )}
        </p>
        {lane.failures > 0 && (
          <p class="meta">
            <span class="fault">{tn('email.failures', lane.failures)}</span>
            {lane.open_until && (
              <span>
                {t('email.open-until')} <time dateTime={lane.open_until}>{exactTime(new Date(lane.open_until))}</time>
              </span>
            )}
          </p>
        )}
      </div>
    </li>
  );
}
