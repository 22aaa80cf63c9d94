import { useEffect, useState } from 'preact/hooks';

import type { Report } from '../../api/client';
import { t } from '../../lang/i18n';
import type { Position } from '../../map/address';
import { locate } from '../../map/locate';
import { applyEvents, hides, watchFeed } from '../../state/feed';
import type { Filters } from '../../state/list';
import { metresTo, reportsNear } from '../../state/near';
import { Fault } from '../../ui/problem';
import { Skeleton } from '../../ui/skeleton';
import { Card } from './cards';

/** The area grows until it has enough reports, or all of a city. */
const AREAS_M = [500, 2_000, 8_000, 30_000];
const ENOUGH = 15;
/** As many as the service gives at once. */
const MAX_FOUND = 100;

/** The reports around the reader, the nearest first. Where that is, only the area that is asked for tells. */
export function NearMe({ filters: { status, category, q } }: { filters: Filters }) {
  const [at, setAt] = useState<Position>();
  const [lost, setLost] = useState(false);
  const [reports, setReports] = useState<Report[]>();
  const [error, setError] = useState<unknown>();
  const find = () => {
    setLost(false);
    locate(setAt, () => setLost(true));
  };
  useEffect(find, []);
  const wanted = JSON.stringify([at, status, category, q]);
  useEffect(() => {
    if (!at) return;
    let latest = true;
    const load = () =>
      findAround(at, { status, category, ...(q && { q }), limit: MAX_FOUND }).then(
        (found) => {
          if (!latest) return;
          setReports(found);
          setError(undefined);
        },
        (failure: unknown) => latest && setError(failure),
      );
    void load();
    const end = watchFeed({
      onEvents: (events) => {
        const gone = new Set(events.filter(hides).map(({ report_id }) => report_id));
        setReports((shown) => shown?.filter(({ id }) => !gone.has(id)).map((report) => applyEvents(report, events)));
      },
      onGap: () => void load(),
    });
    return () => {
      latest = false;
      end();
    };
  }, [wanted]);
  if (lost) {
    return (
      <p class="empty" role="alert">
        {t('map.lost')}{' '}
        <button type="button" class="link" onClick={find}>
          {t('try-again')}
        </button>
      </p>
    );
  }
  return (
    <div class="cards-box" aria-busy={!reports}>
      <Fault error={error} />
      {!reports && !error && (at ? <Skeleton /> : <p class="empty">{t('sort.locating')}</p>)}
      {reports?.length === 0 && <p class="empty">{t('reports.none')}</p>}
      <ul class="cards">
        {reports?.map((report) => (
          <Card key={report.id} report={report} metres={metresTo(report, at!)} />
        ))}
      </ul>
    </div>
  );
}

/** The reports of the smallest area that has enough of them. */
async function findAround(at: Position, wanted: Parameters<typeof reportsNear>[2]): Promise<Report[]> {
  let found: Report[] = [];
  for (const metres of AREAS_M) {
    found = await reportsNear(at, metres, wanted);
    if (found.length >= ENOUGH) break;
  }
  return found;
}
