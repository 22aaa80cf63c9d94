import { must, reportService } from '../../api/client';
import { t } from '../../lang/console';
import { usePoll } from '../../ui/poll';
import { Keys } from './keys';

const PATH = '/admin/reports/open311/keys';

/** The applications that file reports by Open311. */
export function Open311() {
  const found = usePoll(async () => {
    const { keys, enabled } = await must(reportService.GET(PATH));
    return { items: keys, enabled };
  });
  return (
    <div class="stack narrow">
      <p class="quiet">{t('open311.hint')}</p>
      {found.value?.enabled === false && <p class="note">{t('open311.off')}</p>}
      <Keys
        words={{
          none: t('open311.none'),
          name: t('open311.name'),
          shown: t('open311.key-hint'),
          revoke: (name) => t('open311.revoke-hint', { name }),
        }}
        found={found}
        about={({ reports }) => <span>{t('open311.reports', { count: reports })}</span>}
        make={(name) => must(reportService.POST(PATH, { body: { name } }))}
        revoke={(id) => must(reportService.DELETE(`${PATH}/{id}`, { params: { path: { id } } }))}
      />
    </div>
  );
}
