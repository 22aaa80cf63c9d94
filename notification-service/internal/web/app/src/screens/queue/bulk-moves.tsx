import { must, reportService } from '../../api/client';
import type { components } from '../../api/report.gen';
import { t, tn } from '../../lang/queue';
import { session } from '../../state/session';
import { Badge } from '../../ui/badge';
import { usePoll } from '../../ui/poll';
import { href } from '../../ui/router';
import { Time } from '../../ui/time';
import { Rows } from '../ops/rows';
import { SELDOM_MS } from './undecided';

type Entry = components['schemas']['BulkMoveEntry'];

const MAX_SHOWN = 50;

const read = async () => ({ items: (await must(reportService.GET('/reports/moves', { params: { query: { limit: MAX_SHOWN } } }))).moves });

/** The bulk moves and their authors, the latest first. */
export function BulkMoves() {
  const found = usePoll(read, [], SELDOM_MS);
  const none = (
    <>
      {t('moves.none')} <a href={href('queue')}>{t('work.to-queue')}</a>
    </>
  );
  return (
    <div class="stack">
      <h2>{t('moves')}</h2>
      <Rows found={found} none={none}>
        {(entry) => <Row key={entry.at} entry={entry} />}
      </Rows>
    </div>
  );
}

function Row({ entry: { at, by, status, note, reports, refused = [], ended } }: { entry: Entry }) {
  return (
    <li>
      <div>
        <p class="meta">
          <strong>{by.id === session.value?.sub ? t('audit.you') : by.name}</strong>
          <Badge status={status} />
          <Time at={at} full seconds />
        </p>
        <p>
          {tn('moves.asked', reports.length)} {refused.length > 0 && tn('moves.refused', refused.length)} {!ended && t('moves.broken')}
        </p>
        {note && <p class="said">{note}</p>}
        <details>
          <summary>{t('reports')}</summary>
          <ul>
            {reports.map((id) => (
              <li key={id}>
                <a href={href('queue', { status: 'all', report: id })}>
                  <code>{id}</code>
                </a>
                {refused.includes(id) && <span class="fault"> {t('moves.not-moved')}</span>}
              </li>
            ))}
          </ul>
        </details>
      </div>
    </li>
  );
}
