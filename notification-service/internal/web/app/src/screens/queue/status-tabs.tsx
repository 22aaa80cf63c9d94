import { STATUSES, type QueueCounts, type Status } from '../../api/client';
import { number, t } from '../../lang/queue';
import { waiting } from '../../state/desk';
import type { QueueFilters } from '../../state/filters';
import { setQuery } from '../../ui/router';

interface Props {
  chosen: Status | undefined;
  counts: QueueCounts['statuses'] | undefined;
  reporter: QueueFilters['reporter'];
}

/** The statuses, with how many reports each would show, and what is disputed in the whole city, if anything is. */
export function StatusTabs({ chosen, counts, reporter }: Props) {
  const disputed = waiting.value?.disputed ?? 0;
  const isDisputed = reporter === 'disputed';
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
            aria-pressed={status === chosen && !isDisputed}
            onClick={() => setQuery({ status: status ?? 'all', ...(isDisputed && { reporter: '' }) })}
          >
            {status ? t(`status.${status}`) : t('work.all')}
            {count !== undefined && <span class="quiet"> {number(count)}</span>}
          </button>
        );
      })}
      {(disputed > 0 || isDisputed) && (
        <button type="button" aria-pressed={isDisputed} onClick={() => setQuery({ status: 'all', reporter: 'disputed' })}>
          {t('work.reporter.disputed')} <span class="warn">{number(disputed)}</span>
        </button>
      )}
    </div>
  );
}
