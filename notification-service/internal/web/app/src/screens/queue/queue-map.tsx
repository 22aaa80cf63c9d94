import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { must, reportService, type MapPoints, type QueueCounts, type Task } from '../../api/client';
import { t } from '../../lang/queue';
import { located } from '../../map/points';
import { Map } from '../../map/map';
import type { Plot } from '../../map/plot';
import { queryOf, type QueueFilters } from '../../state/filters';
import { Fault } from '../../ui/problem';
import { setQuery } from '../../ui/router';

interface Props {
  tasks: Task[];
  filters: QueueFilters;
  /** Of the filters: other ones are looked at as a whole. */
  filtered: string;
  /** Read again after each change of the queue, and the map with them. */
  counts: QueueCounts | undefined;
  onOpen(id: string): void;
}

/** Where all that the filters show is, also what the list has not loaded. On request they show the part in sight alone. */
export function QueueMap({ tasks, filters, filtered, counts, onOpen }: Props) {
  const plot = useRef<Plot>(undefined);
  const [shown, setShown] = useState<{ bbox: string; zoom: number }>();
  const [found, setFound] = useState<MapPoints>();
  const [error, setError] = useState<unknown>();
  const points = useMemo(() => found?.points.map(({ title, ...point }) => ({ ...point, label: title })), [found]);
  const [tries, setTries] = useState(0);
  useEffect(() => {
    if (!shown) return;
    let latest = true;
    const query = { ...queryOf(filters), ...shown };
    must(reportService.GET('/reports/queue/map', { params: { query } })).then(
      (fresh) => {
        if (!latest) return;
        setError(undefined);
        setFound(fresh);
      },
      (failure: unknown) => latest && setError(failure),
    );
    return () => {
      latest = false;
    };
  }, [shown?.bbox, shown?.zoom, filtered, counts, tries]);

  const looked = useRef('');
  const look = () => {
    const places = filters.bbox ? corners(filters.bbox) : tasks.flatMap(located);
    if (!plot.current || places.length === 0 || looked.current === filtered) return;
    looked.current = filtered;
    // A part that was chosen by moving the map is in sight already.
    if (filters.bbox !== shown?.bbox) plot.current.lookAt(places, true);
  };
  useEffect(look, [filtered, tasks]);
  return (
    <section class="queue-map" aria-label={t('view.map')}>
      <Map
        label={t('map.of-reports')}
        {...(points && { points })}
        {...(found && { clusters: found.clusters })}
        onChoose={({ id }) => onOpen(id)}
        onReady={(made) => {
          plot.current = made;
          look();
        }}
        onMove={(bbox, zoom, byReader) => {
          setShown({ bbox, zoom });
          if (byReader && filters.bbox) setQuery({ bbox });
        }}
      >
        <label class="check map-only">
          <input
            type="checkbox"
            checked={filters.bbox !== ''}
            onChange={(event) => setQuery({ bbox: event.currentTarget.checked ? (shown?.bbox ?? '') : '' })}
          />
          {t('map.only-here')}
        </label>
      </Map>
      <Fault error={error} retry={() => setTries(tries + 1)} />
    </section>
  );
}

/** The two corners of a box as the address has it. */
function corners(bbox: string) {
  const [west = 0, south = 0, east = 0, north = 0] = bbox.split(',').map(Number);
  return [
    { longitude: west, latitude: south },
    { longitude: east, latitude: north },
  ];
}
