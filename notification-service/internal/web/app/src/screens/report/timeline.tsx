import type { HistoryEntry } from '../../api/client';
import { t } from '../../lang/i18n';
import { Badge } from '../../ui/badge';
import { Time } from '../../ui/time';

/** The report's changes of status, oldest first. */
export function Timeline({ history }: { history: HistoryEntry[] }) {
  return (
    <section aria-labelledby="timeline">
      <h2 id="timeline">{t('timeline')}</h2>
      <ol class="timeline">
        {history.map((entry) => (
          <li key={entry.version} data-status={entry.to_status}>
            {entry.from_status ? <Badge status={entry.to_status} /> : <span class="badge">{t('timeline.filed')}</span>}
            <small>
              <Time at={entry.changed_at} dated />
            </small>
            {entry.note && <p class="said">{entry.note}</p>}
          </li>
        ))}
      </ol>
    </section>
  );
}
