import { useState } from 'preact/hooks';

import { must, reportService } from '../../api/client';
import { number, t } from '../../lang/console';
import { guestRules, loadGuestRules } from '../../state/guests';
import { usePoll } from '../../ui/poll';
import { Fault } from '../../ui/problem';
import { Time } from '../../ui/time';
import { Acts } from './acts';
import { Reason } from './reason';
import { Waiting } from './waiting';

const PATH = '/admin/reports/guests';

/** Whether people may report without an account now, and the switch that ends a flood of such reports. */
export function Guests() {
  const found = usePoll(async () => {
    const [now] = await Promise.all([must(reportService.GET(PATH)), loadGuestRules()]);
    return now;
  });
  const [asking, setAsking] = useState(false);
  const now = found.value;
  const act = now && t(now.open ? 'guests.close' : 'guests.reopen');
  return (
    <div class="stack narrow">
      <p class="quiet">{t('guests.hint')}</p>
      {now ? <Fault error={found.error} retry={found.refresh} /> : <Waiting error={found.error} retry={found.refresh} />}
      {now && (
        <section class="panel stack">
          <p role="status">
            <strong>{t(now.open ? 'guests.open' : 'guests.closed')}</strong>
          </p>
          {now.changed_at && (
            <p class="meta">
              <span>
                {t('guests.since')} <Time at={now.changed_at} full />
              </span>
              {now.reason && <span>{t('guests.because', { reason: now.reason })}</span>}
            </p>
          )}
          <p class="quiet">
            {now.open
              ? guestRules.value && t('guests.rules', { count: number(guestRules.value.reports_per_day) })
              : t('guests.closed-hint')}
          </p>
          <Acts>
            <p class="bar">
              <button type="button" class={now.open ? 'danger-quiet' : undefined} aria-haspopup="dialog" onClick={() => setAsking(true)}>
                {act}
              </button>
            </p>
          </Acts>
        </section>
      )}
      {asking && now && act && (
        <Reason
          title={act}
          hint={`${now.open ? `${t('guests.closed-hint')} ` : ''}${t('guests.reason')}`}
          onSubmit={(reason) => must(reportService.PUT(PATH, { body: { open: !now.open, reason } }))}
          onClose={() => {
            setAsking(false);
            found.refresh();
          }}
        />
      )}
    </div>
  );
}
