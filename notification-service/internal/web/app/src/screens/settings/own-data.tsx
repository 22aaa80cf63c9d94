import { must, notificationService, reportService } from '../../api/client';
import { t } from '../../lang/settings';
import { useAct } from '../../ui/act';
import { Fault } from '../../ui/problem';
import { save } from '../../ui/save';

/** Everything that the city holds about the reader, as one file of both services. */
export function OwnData() {
  const { busy, error, run } = useAct();
  const fetchAll = () =>
    run(async () => {
      const [reports, notifications] = await Promise.all([
        must(reportService.GET('/reports/mine/data')),
        must(notificationService.GET('/me/data')),
      ]);
      save(new Blob([JSON.stringify({ reports, notifications }, null, 2)], { type: 'application/json' }), 'my-data', 'json');
    });
  return (
    <section class="panel stack" aria-labelledby="own-data">
      <h2 id="own-data">{t('settings.data')}</h2>
      <p class="quiet">{t('settings.data.hint')}</p>
      <Fault error={error} retry={() => void fetchAll()} />
      <button type="button" aria-busy={busy} disabled={busy} onClick={() => void fetchAll()}>
        {t('settings.data.save')}
      </button>
    </section>
  );
}
