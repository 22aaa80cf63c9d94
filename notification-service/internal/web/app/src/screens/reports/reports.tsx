import { render } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { must, reportService, type Figures, type MapPoints, type Status } from '../../api/client';
import { number, t, tn } from '../../lang/i18n';
import { debounce } from '../../live/batch';
import { lit } from '../../map/highlight';
import { locate } from '../../map/locate';
import { located } from '../../map/points';
import { Map } from '../../map/map';
import { PlaceSearch } from '../../map/place-search';
import type { Plot, Point } from '../../map/plot';
import { FirstPhotoOf } from '../../photos/first-photo';
import { canSearch, config, inCity } from '../../state/config';
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

/** All reports, as a list and on a map; a phone that shows the map has the list on a sheet over it. */
export function ReportsScreen() {
  const view = route.value.query.get('view') === 'map' ? 'map' : 'list';
  const other = view === 'map' ? 'list' : 'map';
  const wanted = filters();
  const [area, setArea] = useState<Area>();
  const [high, setHigh] = useState(false);
  const near = route.value.query.get('sort') === 'near';
  useEffect(() => list.watch(), []);
  useEffect(() => list.load(wanted), [JSON.stringify(wanted)]);
  // A pin that is pressed has its row in sight on the sheet.
  useEffect(() => lit.subscribe(() => requestAnimationFrame(showLit)), []);
  return (
    <>
      <div class="title-row welcome">
        <h1 tabIndex={-1}>{t('welcome', { city: config.city?.name ?? t('welcome.city') })}</h1>
        {list.figures.value && <CityFigures figures={list.figures.value} />}
      </div>
      <FilterBar filters={wanted} sorting={near ? 'near' : wanted.order} area={area?.bbox}>
        <button type="button" class="plain to-view" onClick={() => setQuery({ view: view === 'map' ? '' : other })}>
          <Icon name={other} /> {t(`view.${other}`)}
        </button>
      </FilterBar>
      <div class="split" data-view={view}>
        <section aria-label={t('view.list')} class="sheet" data-high={high}>
          <button type="button" class="plain grip" aria-expanded={high} onClick={() => setHigh(!high)}>
            {t('reports')}
          </button>
          {near ? (
            <NearMe filters={wanted} />
          ) : (
            <Cards list={list} empty={isNarrowed(wanted) ? t('reports.none') : <Nothing text={t('reports.none-yet')} />} />
          )}
        </section>
        <section aria-label={t('view.map')} class="beside">
          <AreaMap filters={wanted} shown={area} onShown={setArea} />
        </section>
      </div>
    </>
  );
}

function showLit(): void {
  document.querySelector(".split[data-view='map'] [data-lit='true']")?.scrollIntoView({ block: 'nearest' });
}

const DAY_S = 86_400;

/** Three numbers about the fate of reports. */
function CityFigures({ figures: { open, resolved, median_seconds } }: { figures: Figures }) {
  const days = median_seconds === undefined ? undefined : Math.max(1, Math.ceil(median_seconds / DAY_S));
  return (
    <ul class="city-figures">
      <li>
        <strong>{number(open)}</strong> {tn('figures.open', open)}
      </li>
      <li>
        <strong>{number(resolved)}</strong> {tn('figures.resolved', resolved)}
      </li>
      {days !== undefined && (
        <li>
          <strong>{number(days)}</strong> {tn('figures.days', days)}
        </li>
      )}
    </ul>
  );
}

interface AreaMapProps {
  filters: Filters;
  shown: Area | undefined;
  onShown(area: Area): void;
}

/** The map of what the filters let pass, which is more than the list has loaded. On request the list is narrowed to the area shown. */
function AreaMap({ filters, shown, onShown }: AreaMapProps) {
  const plot = useRef<Plot | null>(null);
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
    const lose = () => setLost(true);
    locate((here) => (inCity(here) ? plot.current?.here(here) : lose()), lose);
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
          onShown({ bbox, zoom });
          if (byReader && route.value.query.has('bbox')) setQuery({ bbox });
        }}
      />
      <Fault error={error} retry={read} />
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
