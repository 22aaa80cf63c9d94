import { useEffect, useState } from 'preact/hooks';

import { must, reportService } from '../../api/client';
import type { components } from '../../api/report.gen';
import { t, tn } from '../../lang/queue';
import { session } from '../../state/session';
import { Badge } from '../../ui/badge';
import { Fault } from '../../ui/problem';
import { href } from '../../ui/router';
import { Skeleton } from '../../ui/skeleton';
import { Time } from '../../ui/time';

type Entry = components['schemas']['BulkMoveEntry'];

const MAX_SHOWN = 50;

/** The bulk moves and their authors, the latest first. */
export function BulkMoves() {
  const [moves, setMoves] = useState<Entry[]>();
  const [error, setError] = useState<unknown>();
  const read = () => {
    must(reportService.GET('/reports/moves', { params: { query: { limit: MAX_SHOWN } } })).then((found) => {
      setMoves(found.moves);
      setError(undefined);
    }, setError);
  };
  useEffect(read, []);
  return (
    <div class="stack">
      <h2>{t('moves')}</h2>
      <Fault error={error} retry={read} />
      {!moves && !error && <Skeleton />}
      {moves?.length === 0 && (
        <p class="empty">
          {t('moves.none')} <a href={href('queue')}>{t('work.to-queue')}</a>
        </p>
      )}
      <ul class="rows">
        {moves?.map((entry) => (
          <Row key={entry.at} entry={entry} />
        ))}
      </ul>
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
