import type { HistoryEntry } from '../../api/client';
import { t } from '../../lang/i18n';
import { Badge } from '../../ui/badge';
import { Time } from '../../ui/time';

/** The report's changes of status and the city's replies, oldest first. */
export function Timeline({ history }: { history: HistoryEntry[] }) {
  return (
    <section aria-labelledby="timeline">
      <h2 id="timeline">{t('timeline')}</h2>
      <ol class="timeline">
        {history.map((entry) => (
          <li key={entry.version} data-status={entry.to_status}>
            <What entry={entry} />
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

function What({ entry: { from_status, to_status } }: { entry: HistoryEntry }) {
  if (!from_status) return <span class="badge">{t('timeline.filed')}</span>;
  if (from_status === to_status) return <span class="badge">{t('timeline.reply')}</span>;
  return <Badge status={to_status} />;
}
