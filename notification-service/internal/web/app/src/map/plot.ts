/**
 * The map of the city by MapLibre, loaded only where one is shown. Without
 * tiles it is empty: what is drawn on it is in its place all the same.
 */
import './plot.css';

import { effect } from '@preact/signals';
import type { LngLatBoundsLike } from 'maplibre-gl';
import { Protocol } from 'pmtiles';
import maplibregl from 'virtual:maplibre';

import { STATUSES, type Asset, type Status } from '../api/client';
import { number, t } from '../lang/i18n';
import { ASSETS_ZOOM } from '../state/assets';
import { config } from '../state/config';
import { theme } from '../state/preferences';
import { describePlace, type Named, type Position } from './address';
import { lights, lit } from './highlight';
import { findPlaces, type Found } from './search';
import { CITY, cityStyle } from './style';

export interface Point extends Position {
  id: string;
  label: string;
  status: Status;
}

export interface Cluster extends Position {
  count: number;
  /** How many have each status. */
  statuses: { [status: string]: number };
}

export interface PlotOptions {
  label: string;
  /** The element that is shown when a point was chosen. */
  popup?: ((point: Point) => HTMLElement) | undefined;
  /** Called with a point that was chosen, in place of a popup. */
  onChoose?: ((point: Point) => void) | undefined;
  /** The map has come to rest at another area, where the reader moved it or by itself. */
  onMove?: ((bbox: string, zoom: number, byReader: boolean) => void) | undefined;
  /** The map's centre is what is chosen; called when it has come to rest after the reader moved it. */
  onCenter?: ((position: Position) => void) | undefined;
  /** Called with a thing of the city that was chosen; without it a popup says what is reported of it. */
  onAsset?: ((asset: Asset) => void) | undefined;
}

export type Plot = ReturnType<typeof createPlot>;

const STREET_ZOOM = 16;
/** How much nearer one comes by pressing a cluster. */
const CLOSER = 2;
/** Beyond the city's edges, so that they can be in the middle. */
const MARGIN = 0.25;

maplibregl.addProtocol('pmtiles', new Protocol().tile);

export function createPlot(element: HTMLElement, { label, popup, onChoose, onMove, onCenter, onAsset }: PlotOptions) {
  const { tiles, attribution, bounds, center } = config.map;
  const tilesUrl = tiles && new URL(tiles, location.href).href;
  const map = new maplibregl.Map({
    container: element,
    style: cityStyle(theme(), tilesUrl),
    attributionControl: false,
    dragRotate: false,
    pitchWithRotate: false,
    fadeDuration: 0,
    maxZoom: 19,
    ...(bounds && { maxBounds: widened(bounds) }),
    ...(center ? { center: [center[0], center[1]], zoom: center[2] } : bounds ? { bounds: rectangle(bounds) } : { zoom: 1 }),
    locale: {
      'NavigationControl.ZoomIn': t('map.zoom-in'),
      'NavigationControl.ZoomOut': t('map.zoom-out'),
      'Map.Title': label,
    },
  });
  map.touchZoomRotate.disableRotation();
  map.keyboard.disableRotation();
  map.addControl(new maplibregl.NavigationControl({ showCompass: false }), 'top-right');
  map.addControl(new maplibregl.ScaleControl(), 'bottom-left');
  if (attribution) map.addControl(attributionControl(attribution), 'bottom-right');

  const markers: maplibregl.Marker[] = [];
  const assets: maplibregl.Marker[] = [];
  let shownAt: maplibregl.Marker | undefined;
  /** Whether the reader, or what is shown, has chosen where to look. */
  let placed = false;

  const area = () => {
    const { _sw: sw, _ne: ne } = map.getBounds();
    const within = (value: number, most: number) => Math.min(most, Math.max(-most, value)).toFixed(5);
    return [within(sw.lng, 180), within(sw.lat, 90), within(ne.lng, 180), within(ne.lat, 90)].join(',');
  };
  const rested = (byReader: boolean) => {
    element.dataset.rests = 'true';
    const zoom = Math.max(0, Math.floor(map.getZoom()));
    onMove?.(area(), zoom, byReader);
    void showAssets(area(), zoom).catch(() => {}); // without them the map is as useful as before
  };
  // Programs that take a picture wait for the tiles.
  map.on('idle', () => (element.dataset.drawn = element.dataset.ready = 'true'));
  map.on('dataloading', () => delete element.dataset.drawn);
  // Reports do not.
  queueMicrotask(() => rested(false));
  map.on('moveend', (event) => {
    const byReader = 'originalEvent' in event && Boolean(event.originalEvent);
    rested(byReader);
    if (byReader) onCenter?.(rounded(map.getCenter()));
  });
  if (onCenter) {
    element.classList.add('picks');
    map.on('click', ({ lngLat }) => {
      map.panTo(lngLat, { animate: false });
      onCenter(rounded(lngLat));
    });
  }
  const ring = new maplibregl.Marker({ element: Object.assign(document.createElement('span'), { className: 'ring', ariaHidden: 'true' }) });
  const unlight = effect(() => {
    const { latitude, longitude } = lit.value ?? {};
    if (latitude === undefined || longitude === undefined) return void ring.remove();
    ring.setLngLat([longitude, latitude]).addTo(map);
    for (const name of ['tabindex', 'role', 'aria-label']) ring.getElement().removeAttribute(name);
  });
  const recolour = () => map.setStyle(cityStyle(theme(), tilesUrl));
  const media = matchMedia('(prefers-color-scheme: dark)');
  media.addEventListener('change', recolour);

  const button = (of: maplibregl.Marker[], className: string, name: string, position: Position, press: () => void) => {
    const dot = document.createElement('button');
    dot.type = 'button';
    dot.className = `dot ${className}`;
    dot.setAttribute('aria-label', name);
    dot.addEventListener('click', (event) => {
      event.stopPropagation();
      press();
    });
    const marker = new maplibregl.Marker({ element: dot }).setLngLat([position.longitude, position.latitude]).addTo(map);
    // MapLibre names and focuses its markers by itself; a button is both already.
    dot.removeAttribute('tabindex');
    dot.setAttribute('aria-label', name);
    dot.removeAttribute('role');
    of.push(marker);
    return dot;
  };
  /** Shows the things of the city near by, in place of those before. */
  const showAssets = async (bbox: string, zoom: number) => {
    if (zoom < ASSETS_ZOOM && assets.length === 0) return;
    const { assetsIn, describe, nameOf } = await import('./assets');
    const found = zoom < ASSETS_ZOOM ? [] : await assetsIn(bbox);
    if (area() !== bbox) return; // it was moved in the meantime
    for (const marker of assets.splice(0)) marker.remove();
    for (const asset of found) {
      const name = nameOf(asset, onAsset !== undefined);
      button(assets, 'asset', name, asset, () => (onAsset ? onAsset(asset) : open(asset, describe(asset)))).title = name;
    }
  };
  const open = ({ latitude, longitude }: Position, content: HTMLElement) => {
    new maplibregl.Popup({ offset: 12, maxWidth: '18rem', focusAfterOpen: true, locationOccludedOpacity: 1 })
      .setLngLat([longitude, latitude])
      .setDOMContent(content)
      .addTo(map);
  };

  return {
    /** Shows these in place of what was shown before. */
    show(points: Point[], clusters: Cluster[] = []) {
      for (const marker of markers.splice(0)) marker.remove();
      for (const point of points) {
        if (popup || onChoose) {
          const { onPointerEnter, onPointerLeave } = lights(point);
          const dot = button(markers, point.status, point.label, point, () => {
            onPointerEnter();
            if (onChoose) onChoose(point);
            else if (popup) open(point, popup(point));
          });
          dot.addEventListener('pointerenter', onPointerEnter);
          dot.addEventListener('pointerleave', onPointerLeave);
          dot.title = point.label;
        } else mark(map, markers, `dot ${point.status}`, point);
      }
      for (const cluster of clusters) {
        const dot = button(markers, sizeOf(cluster.count), t('map.cluster', { count: number(cluster.count) }), cluster, () => {
          map.jumpTo({ center: [cluster.longitude, cluster.latitude], zoom: map.getZoom() + CLOSER });
        });
        dot.textContent = number(cluster.count);
        dot.style.setProperty('--shares', sharesOf(cluster));
      }
      element.dataset.shown = String(points.length + clusters.length);
    },
    /** Looks at these positions, unless the reader has chosen where to look. */
    lookAt(positions: Position[], always = false) {
      if ((placed && !always) || positions.length === 0) return;
      placed = true;
      const around = new maplibregl.LngLatBounds();
      for (const { longitude, latitude } of positions) around.extend([longitude, latitude]);
      map.fitBounds(around, { padding: 40, maxZoom: STREET_ZOOM, animate: false });
    },
    /** Puts the centre there, so near that things of the city are shown. */
    moveTo({ latitude, longitude }: Position) {
      placed = true;
      map.jumpTo({ center: [longitude, latitude], zoom: Math.max(map.getZoom(), ASSETS_ZOOM) });
    },
    /** Shows where the device is. */
    here(position: Position) {
      this.moveTo(position);
      shownAt ??= new maplibregl.Marker({ element: Object.assign(document.createElement('span'), { className: 'device' }) });
      shownAt.setLngLat([position.longitude, position.latitude]).addTo(map);
    },
    center: () => rounded(map.getCenter()),
    /** The map's name of a position; empty where it has no names, or has not loaded them. */
    async addressOf(position: Position): Promise<string> {
      if (!tiles) return '';
      if (!map.loaded()) await map.once('idle');
      return describePlace(
        position,
        named(map, 'transportation_name'),
        named(map, 'place', ['suburb', 'quarter', 'neighbourhood', 'village']),
      );
    },
    /** Streets and quarters of that name in what the map has loaded. */
    async find(text: string): Promise<Found[]> {
      if (!tiles) return [];
      if (!map.loaded()) await map.once('idle');
      return findPlaces(text, rounded(map.getCenter()), named(map, 'transportation_name'), named(map, 'place'));
    },
    recolour,
    resize: () => map.resize(),
    remove() {
      unlight();
      media.removeEventListener('change', recolour);
      map.remove();
    },
  };
}

/** A place that cannot be pressed: there is nothing more to say of it. */
function mark(map: maplibregl.Map, markers: maplibregl.Marker[], className: string, { longitude, latitude }: Position): void {
  const element = Object.assign(document.createElement('span'), { className, ariaHidden: 'true' });
  markers.push(new maplibregl.Marker({ element }).setLngLat([longitude, latitude]).addTo(map));
  for (const name of ['tabindex', 'role', 'aria-label']) element.removeAttribute(name);
}

/** Features of the loaded tiles that have a name. */
function named(map: maplibregl.Map, sourceLayer: string, classes?: string[]): Named[] {
  return map.querySourceFeatures(CITY, { sourceLayer }).flatMap(({ properties, geometry }) => {
    const name: unknown = properties['name'] ?? properties['name:latin'];
    if (typeof name !== 'string' || (classes && !classes.includes(String(properties['class'])))) return [];
    switch (geometry.type) {
      case 'Point':
        return [{ name, points: [geometry.coordinates as [number, number]] }];
      case 'LineString':
        return [{ name, points: geometry.coordinates as [number, number][] }];
      case 'MultiLineString':
        return geometry.coordinates.map((points: unknown) => ({ name, points: points as [number, number][] }));
      default:
        return [];
    }
  });
}

/** The attribution as the licence of OpenStreetMap asks: with a link, never hidden. */
function attributionControl(text: string): maplibregl.IControl {
  const element = document.createElement('div');
  element.className = 'maplibregl-ctrl attribution';
  const link = Object.assign(document.createElement('a'), {
    href: 'https://www.openstreetmap.org/copyright',
    target: '_blank',
    rel: 'noopener',
    textContent: text,
  });
  element.append(link);
  return { onAdd: () => element, onRemove: () => element.remove() };
}

/** The statuses of a cluster as parts of a circle. */
function sharesOf({ count, statuses }: Cluster): string {
  let end = 0;
  const shares = STATUSES.map((status) => {
    const begin = end;
    end += (statuses[status] ?? 0) / count;
    return `var(--${status}) ${begin}turn ${end}turn`;
  });
  return `conic-gradient(${shares.join(', ')})`;
}

function sizeOf(count: number): string {
  return count < 10 ? 'cluster' : count < 100 ? 'cluster many' : 'cluster most';
}

function rectangle([west = 0, south = 0, east = 0, north = 0]: number[]): LngLatBoundsLike {
  return [
    [west, south],
    [east, north],
  ];
}

function widened([west = 0, south = 0, east = 0, north = 0]: number[]): LngLatBoundsLike {
  const [wide, high] = [(east - west) * MARGIN, (north - south) * MARGIN];
  return rectangle([Math.max(-180, west - wide), Math.max(-85, south - high), Math.min(180, east + wide), Math.min(85, north + high)]);
}

/** To five digits: about a metre, and no more than is known. */
function rounded({ lat, lng }: { lat: number; lng: number }): Position {
  return { latitude: Number(lat.toFixed(5)), longitude: Number(lng.toFixed(5)) };
}
