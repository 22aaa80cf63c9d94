import type { HistoryEntry } from '../../api/client';
import { t } from '../../lang/i18n';
import { categoryName } from '../../state/categories';
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
            {entry.correction && <Corrected correction={entry.correction} />}
            <small>
              <Time at={entry.changed_at} dated />
              {entry.department_name && ` · ${entry.department_name}`}
            </small>
            {entry.note && <p class="said">{entry.note}</p>}
          </li>
        ))}
      </ol>
    </section>
  );
}

function What({ entry: { from_status, to_status, correction, kind } }: { entry: HistoryEntry }) {
  if (!from_status) return <span class="badge">{t('timeline.filed')}</span>;
  if (correction) return <span class="badge">{t(correction.by_reporter ? 'timeline.corrected-own' : 'timeline.corrected')}</span>;
  if (kind) return <span class="badge">{t(`timeline.${kind}`)}</span>;
  if (from_status === to_status) return <span class="badge">{t('timeline.reply')}</span>;
  return <Badge status={to_status} />;
}

/** The values before and after. A place is named by its address, or only said to be another. */
function Corrected({
  correction: { category, position, address, asset, words, place },
}: {
  correction: NonNullable<HistoryEntry['correction']>;
}) {
  const nameOf = (id: number) => categoryName({ category_id: id, category_name: `${id}` });
  return (
    <>
      {words && <p>{t('timeline.corrected.words')}</p>}
      {place && <p>{t('timeline.corrected.place-own')}</p>}
      {category && <p>{t('timeline.corrected.category', { from: nameOf(category.from), to: nameOf(category.to) })}</p>}
      {address?.from && address.to && <p>{t('timeline.corrected.address', { from: address.from, to: address.to })}</p>}
      {address && !address.from && <p>{t('timeline.corrected.address-given', { to: address.to })}</p>}
      {address && !address.to && <p>{t('timeline.corrected.address-gone', { from: address.from })}</p>}
      {asset && <p>{t('timeline.corrected.asset', { from: asset.from || '–', to: asset.to || '–' })}</p>}
      {position && <p>{t(position.from ? 'timeline.corrected.place' : 'timeline.corrected.place-given')}</p>}
    </>
  );
}
