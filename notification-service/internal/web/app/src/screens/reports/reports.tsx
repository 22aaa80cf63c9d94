import { render } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { must, reportService, type MapPoints, type Status } from '../../api/client';
import { t } from '../../lang/i18n';
import { debounce } from '../../live/batch';
import { located } from '../../map/points';
import { Map } from '../../map/map';
import { PlaceSearch } from '../../map/place-search';
import type { Plot, Point } from '../../map/plot';
import { FirstPhotoOf } from '../../photos/first-photo';
import { canSearch, inCity } from '../../state/config';
import { watchFeed } from '../../state/feed';
import { createList, type Filters } from '../../state/list';
import { Badge } from '../../ui/badge';
import { Icon } from '../../ui/icons';
import { lazily } from '../../ui/lazily';
import { Fault } from '../../ui/problem';
import { href, route, setQuery } from '../../ui/router';
import { FilterBar, isNarrowed } from './filters';
import { Cards, Nothing } from './cards';

const NearMe = lazily(async () => (await import('./near-me')).NearMe);

/** The points of the map. */
interface Area {
  bbox: string;
  zoom: number;
}

/** New reports are put on the map together. */
const REFRESH_MS = 2_000;
const REFRESH_APART_MS = 10_000;
/** A device without a position after this time will not get one. */
const LOCATE_MS = 15_000;

/** Kept between visits of the screen, which then shows it at once. */
const list = createList('all', 'brief');

function filters(): Filters {
  const { query } = route.value;
  return {
    status: (query.get('status')?.split(',') ?? []) as Status[],
    category: query.get('category')?.split(',').map(Number) ?? [],
    q: query.get('q') ?? '',
    bbox: query.get('bbox') ?? '',
    order: ORDERS_OF_API.find((order) => order === query.get('sort')) ?? 'newest',
  };
}

const ORDERS_OF_API = ['changed', 'score'] as const;

/** Fetches the list before the page is drawn, if it is the first screen. */
export function preloadReports(): void {
  if (route.value.path.length === 0) list.load(filters());
}

/** All reports, as a list and on a map. */
export function ReportsScreen() {
  const view = route.value.query.get('view') === 'map' ? 'map' : 'list';
  const wanted = filters();
  const near = route.value.query.get('sort') === 'near';
  useEffect(() => list.watch(), []);
  useEffect(() => list.load(wanted), [JSON.stringify(wanted)]);
  return (
    <>
      <div class="title-row">
        <h1 tabIndex={-1}>{t('reports')}</h1>
        <div class="views" role="group" aria-label={t('view')}>
          {(['list', 'map'] as const).map((each) => (
            <button key={each} type="button" aria-pressed={view === each} onClick={() => setQuery({ view: each === 'map' ? each : '' })}>
              <Icon name={each} /> {t(`view.${each}`)}
            </button>
          ))}
        </div>
      </div>
      <FilterBar filters={wanted} sorting={near ? 'near' : wanted.order} />
      <div class="split" data-view={view}>
        <section aria-label={t('view.list')}>
          {near ? (
            <NearMe filters={wanted} />
          ) : (
            <Cards list={list} empty={isNarrowed(wanted) ? t('reports.none') : <Nothing text={t('reports.none-yet')} />} />
          )}
        </section>
        <section aria-label={t('view.map')} class="beside">
          <AreaMap filters={wanted} />
        </section>
      </div>
    </>
  );
}

/** The map of what the filters let pass, which is more than the list has loaded. On request the list is narrowed to the area shown. */
function AreaMap({ filters }: { filters: Filters }) {
  const plot = useRef<Plot | null>(null);
  const [shown, setShown] = useState<Area>();
  /** Whether there is a map to search. The field is there before: what came later would move the map. */
  const [drawn, setDrawn] = useState(false);
  const [found, setFound] = useState<MapPoints>();
  const [error, setError] = useState<unknown>();
  /** The device does not say where it is, or it is elsewhere. */
  const [lost, setLost] = useState(false);
  const { status, category, q } = filters;
  const wanted = JSON.stringify({ status, category, q });
  const read = () => {
    if (!shown) return;
    const query = { ...shown, status, category, ...(q && { q }) };
    must(reportService.GET('/map/points', { params: { query } })).then((points) => {
      setError(undefined);
      setFound(points);
    }, setError);
  };
  useEffect(read, [wanted, JSON.stringify(shown)]);
  useEffect(() => {
    const again = debounce(read, REFRESH_MS, REFRESH_APART_MS);
    return watchFeed({ onEvents: (events) => events.some(({ type }) => type !== 'report.vote.received') && again(), onGap: again });
  }, [wanted, JSON.stringify(shown)]);
  // Results of a search are shown wherever they are in the city.
  const first = useRef(wanted);
  useEffect(() => {
    if (wanted === first.current) return;
    first.current = wanted;
    if (list.state.value === 'ready') plot.current?.lookAt(list.reports.value.flatMap(located), true);
  }, [list.reports.value]);
  const points = useMemo(() => found?.points.map(({ title, ...point }) => ({ ...point, label: title })), [found]);
  const nearMe = () => {
    setLost(false);
    navigator.geolocation.getCurrentPosition(
      ({ coords: here }) => {
        if (!inCity(here)) return setLost(true);
        plot.current?.here(here);
        plot.current?.moveTo(here);
      },
      () => setLost(true),
      { timeout: LOCATE_MS },
    );
  };
  return (
    <>
      <div class="map-find">
        {canSearch() && <PlaceSearch plot={plot} disabled={!drawn} onFound={({ position }) => plot.current?.moveTo(position)} />}
        {'geolocation' in navigator && (
          <button type="button" onClick={nearMe}>
            <Icon name="here" /> {t('map.near-me')}
          </button>
        )}
        {lost && (
          <p class="fault" role="status">
            {t('map.lost')}
          </p>
        )}
      </div>
      <Map
        label={t('map.of-reports')}
        {...(points && { points })}
        {...(found && { clusters: found.clusters })}
        onReady={(made) => {
          plot.current = made;
          setDrawn(true);
        }}
        popup={describePoint}
        onMove={(bbox, zoom, byReader) => {
          setShown({ bbox, zoom });
          if (byReader && route.value.query.has('bbox')) setQuery({ bbox });
        }}
      />
      <Fault error={error} retry={read} />
      <div class="bar map-bar">
        <label class="check">
          <input
            type="checkbox"
            checked={filters.bbox !== ''}
            onChange={(event) => setQuery({ bbox: event.currentTarget.checked ? (shown?.bbox ?? '') : '' })}
          />
          {t('map.only-here')}
        </label>
      </div>
    </>
  );
}

/** The facts of a report in the map's popup. */
function describePoint(point: Point): HTMLElement {
  const element = document.createElement('div');
  render(
    <div class="popup">
      <a href={href(`reports/${point.id}`)}>{point.label}</a>
      <Badge status={point.status} />
      <FirstPhotoOf report={point.id} />
    </div>,
    element,
  );
  return element;
}
