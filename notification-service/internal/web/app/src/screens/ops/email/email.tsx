import { must, notificationService, type EmailStatus } from '../../../api/client';
import { t, tn } from '../../../lang/console';
import { Fault } from '../../../ui/problem';
import { usePoll } from '../../../ui/poll';
import { Time } from '../../../ui/time';
import { Waiting } from '../waiting';

/** Where mails are stuck, and what came back. */
export function Email() {
  const status = usePoll(() => must(notificationService.GET('/admin/email')));
  return (
    <div class="stack">
      {status.value ? <Fault error={status.error} retry={status.refresh} /> : <Waiting error={status.error} retry={status.refresh} />}
      {status.value && (
        <>
          <section class="stack" aria-labelledby="mail-hosts">
            <h2 id="mail-hosts">{t('email.hosts')}</h2>
            <p class="quiet">
              {t('email.crowds')} {t('email.as-of')} <Time at={status.value.as_of} full />
            </p>
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
                      <span>{hostName(lane)}</span>
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
        <strong>{hostName(lane.lane)}</strong>
        <p class="meta">
          {lane.waiting === 0 && <span>{t('email.flows')}</span>}
          {lane.waiting > 0 && <span class="fault">{tn('email.waiting', lane.waiting)}</span>}
          {lane.waiting_since && (
            <span>
              {t('email.since')} <Time at={lane.waiting_since} full />
            </span>
          )}
        </p>
      </div>
    </li>
  );
}

/** All hosts of few people are one. */
const hostName = (lane: string) => (lane === 'others' ? t('email.others') : lane);
