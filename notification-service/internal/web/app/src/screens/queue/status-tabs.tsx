import type { QueueCounts, Status } from '../../api/client';
import { number, t } from '../../lang/queue';
import { STATUSES } from '../../ui/badge';
import { setQuery } from '../../ui/router';

/** The statuses, with how many reports each would show. */
export function StatusTabs({ chosen, counts }: { chosen: Status | undefined; counts: QueueCounts['statuses'] | undefined }) {
  const countOf = (status: Status | undefined) =>
    counts?.reduce((sum, each) => sum + (status === undefined || each.status === status ? each.count : 0), 0);
  return (
    <div class="views always" role="group" aria-label={t('status')}>
      {[...STATUSES, undefined].map((status) => {
        const count = countOf(status);
        return (
          <button
            key={status ?? 'all'}
            type="button"
            aria-pressed={status === chosen}
            onClick={() => setQuery({ status: status ?? 'all' })}
          >
            {status ? t(`status.${status}`) : t('work.all')}
            {count !== undefined && <span class="quiet"> {number(count)}</span>}
          </button>
        );
      })}
    </div>
  );
}
