import { useEffect, useRef, useState } from 'preact/hooks';

import type { Status } from '../../api/client';
import { t } from '../../lang/i18n';
import { Map } from '../../map/map';
import { createList, type Filters } from '../../state/list';
import { Icon } from '../../ui/icons';
import { go, route, setQuery } from '../../ui/router';
import { FilterBar } from './filters';
import { Cards, located } from './cards';

/** Kept between visits of the screen, which then shows it at once. */
const list = createList('all');

function filters(): Filters {
  const { query } = route.value;
  return {
    status: (query.get('status')?.split(',') ?? []) as Status[],
    category: query.get('category')?.split(',').map(Number) ?? [],
    q: query.get('q') ?? '',
    bbox: query.get('bbox') ?? '',
    oldestFirst: false,
  };
}

/** Fetches the list before the page is drawn, if it is the first screen. */
export function preloadReports(): void {
  if (route.value.path.length === 0) list.load(filters());
}

/** All reports, as a list and on a map. */
export function ReportsScreen() {
  const [view, setView] = useState<'list' | 'map'>('list');
  const wanted = filters();
  useEffect(() => list.watch(), []);
  useEffect(() => list.load(wanted), [JSON.stringify(wanted)]);
  return (
    <>
      <div class="title-row">
        <h1 tabIndex={-1}>{t('reports')}</h1>
        <div class="views" role="group" aria-label={t('view')}>
          {(['list', 'map'] as const).map((each) => (
            <button key={each} type="button" aria-pressed={view === each} onClick={() => setView(each)}>
              <Icon name={each} /> {t(`view.${each}`)}
            </button>
          ))}
        </div>
      </div>
      <FilterBar filters={wanted} />
      <div class="split" data-view={view}>
        <section aria-label={t('view.list')}>
          <Cards list={list} empty={t('reports.none')} />
        </section>
        <section aria-label={t('view.map')} class="beside">
          <AreaMap bbox={wanted.bbox} />
        </section>
      </div>
    </>
  );
}

/** The map of the list. On request the list is narrowed to the area shown. */
function AreaMap({ bbox }: { bbox: string }) {
  const shown = useRef('');
  const points = located(list.reports.value);
  const narrow = (on: boolean) => setQuery({ bbox: on ? shown.current : '' });
  return (
    <>
      <Map
        label={t('map.of-reports')}
        points={points}
        onOpen={(id) => go(`reports/${id}`)}
        onMove={(area) => {
          shown.current = area;
          if (route.value.query.has('bbox')) setQuery({ bbox: area });
        }}
      />
      <div class="bar map-bar">
        <label class="check">
          <input type="checkbox" checked={bbox !== ''} onChange={(event) => narrow(event.currentTarget.checked)} />
          {t('map.only-here')}
        </label>
      </div>
    </>
  );
}
