/** How the city is drawn, in the colours of both themes. The tiles have the OpenMapTiles schema. */
import type { ExpressionSpecification, LayerSpecification, StyleSpecification } from 'maplibre-gl';

export type Theme = 'light' | 'dark';

/** The name of the source; streetAt asks it too. */
export const CITY = 'city';

const palettes = {
  light: {
    ground: '#f1efe9',
    built: '#e9e6de',
    building: '#ddd8cd',
    green: '#d5e3c8',
    water: '#b5d3e2',
    road: '#ffffff',
    edge: '#d3cdc0',
    main: '#fbe7ac',
    mainEdge: '#dcbf74',
    rail: '#b9b3a7',
    text: '#3d4347',
    quiet: '#6b7177',
    halo: '#ffffff',
    waterText: '#3a6c86',
  },
  dark: {
    ground: '#1b1f22',
    built: '#20252a',
    building: '#2b3137',
    green: '#22332a',
    water: '#1d3a4a',
    road: '#3a4148',
    edge: '#14171a',
    main: '#5d5337',
    mainEdge: '#14171a',
    rail: '#4a5057',
    text: '#e2e5e8',
    quiet: '#a5adb5',
    halo: '#14171a',
    waterText: '#8fc0da',
  },
} as const;

/** Labels are drawn by the browser in the page's own font: without glyphs there is nothing to fetch. */
const FONT = ['Inter Variable'];

const MAIN = ['motorway', 'trunk', 'primary', 'secondary'];
const MINOR = ['tertiary', 'minor', 'busway'];
const SMALL = ['service', 'track', 'path'];

const isClass = (classes: readonly string[]): ExpressionSpecification => ['in', ['get', 'class'], ['literal', [...classes]]];
/** A width that grows with the zoom, in pixels at zooms 10, 14 and 18. */
const width = (at10: number, at14: number, at18: number): ExpressionSpecification => [
  'interpolate',
  ['exponential', 1.5],
  ['zoom'],
  10,
  at10,
  14,
  at14,
  18,
  at18,
];

/** The style of a map with the tiles at this address, or of an empty one. */
export function cityStyle(theme: Theme, tiles: string | undefined): StyleSpecification {
  const colour = palettes[theme];
  const ground: LayerSpecification = { id: 'ground', type: 'background', paint: { 'background-color': colour.ground } };
  const areas: StyleSpecification['sources'] = { areas: { type: 'geojson', data: `${location.origin}/areas` } };
  const borders: LayerSpecification = {
    id: 'areas',
    type: 'line',
    source: 'areas',
    paint: { 'line-color': colour.quiet, 'line-width': 1.5, 'line-opacity': 0.7, 'line-dasharray': [3, 2] },
  };
  if (!tiles) return { version: 8, sources: areas, layers: [ground, borders] };

  const from = (layer: string) => ({ source: CITY, 'source-layer': layer });
  const roads = (id: string, classes: string[], fill: string, edge: string, [a, b, c]: [number, number, number]): LayerSpecification[] => [
    {
      id: `${id}-edge`,
      type: 'line',
      ...from('transportation'),
      filter: isClass(classes),
      layout: { 'line-cap': 'round', 'line-join': 'round' },
      paint: { 'line-color': edge, 'line-width': width(a + 0.6, b + 1.6, c + 2) },
    },
    {
      id,
      type: 'line',
      ...from('transportation'),
      filter: isClass(classes),
      layout: { 'line-cap': 'round', 'line-join': 'round' },
      paint: { 'line-color': fill, 'line-width': width(a, b, c) },
    },
  ];
  const label = { 'text-color': colour.text, 'text-halo-color': colour.halo, 'text-halo-width': 1.4 };
  const name: ExpressionSpecification = ['coalesce', ['get', 'name'], ['get', 'name:latin']];
  return {
    version: 8,
    sources: { ...areas, [CITY]: { type: 'vector', url: `pmtiles://${tiles}` } },
    layers: [
      ground,
      {
        id: 'built',
        type: 'fill',
        ...from('landuse'),
        filter: isClass(['residential', 'commercial', 'industrial', 'retail', 'school', 'hospital']),
        paint: { 'fill-color': colour.built },
      },
      {
        id: 'green',
        type: 'fill',
        ...from('landcover'),
        filter: isClass(['wood', 'grass', 'farmland', 'wetland']),
        paint: { 'fill-color': colour.green, 'fill-opacity': 0.7 },
      },
      { id: 'water', type: 'fill', ...from('water'), paint: { 'fill-color': colour.water } },
      { id: 'waterway', type: 'line', ...from('waterway'), paint: { 'line-color': colour.water, 'line-width': width(0.5, 2, 8) } },
      { id: 'building', type: 'fill', minzoom: 14, ...from('building'), paint: { 'fill-color': colour.building } },
      {
        id: 'small',
        type: 'line',
        minzoom: 13,
        ...from('transportation'),
        filter: isClass(SMALL),
        paint: { 'line-color': colour.road, 'line-width': width(0.2, 0.8, 5) },
      },
      ...roads('minor', MINOR, colour.road, colour.edge, [0.4, 2.2, 14]),
      ...roads('main', MAIN, colour.main, colour.mainEdge, [1.2, 4, 20]),
      {
        id: 'rail',
        type: 'line',
        ...from('transportation'),
        filter: isClass(['rail', 'transit']),
        paint: { 'line-color': colour.rail, 'line-width': width(0.6, 1.4, 3), 'line-dasharray': [4, 2] },
      },
      borders,
      {
        id: 'water-name',
        type: 'symbol',
        ...from('waterway'),
        minzoom: 13,
        layout: { 'symbol-placement': 'line', 'text-field': name, 'text-font': FONT, 'text-size': 11 },
        paint: { ...label, 'text-color': colour.waterText },
      },
      {
        id: 'street-name',
        type: 'symbol',
        ...from('transportation_name'),
        minzoom: 13,
        layout: {
          'symbol-placement': 'line',
          'text-field': name,
          'text-font': FONT,
          'text-size': ['interpolate', ['linear'], ['zoom'], 13, 10, 17, 13],
        },
        paint: label,
      },
      {
        id: 'poi',
        type: 'symbol',
        ...from('poi'),
        minzoom: 15,
        filter: ['<=', ['get', 'rank'], 20],
        layout: { 'text-field': name, 'text-font': FONT, 'text-size': 11, 'text-max-width': 8 },
        paint: { ...label, 'text-color': colour.quiet },
      },
      {
        id: 'place',
        type: 'symbol',
        ...from('place'),
        maxzoom: 15.5,
        layout: {
          'text-field': name,
          'text-font': FONT,
          'text-size': ['match', ['get', 'class'], ['city', 'town'], 16, ['suburb', 'village'], 13, 11],
          'text-max-width': 8,
        },
        paint: label,
      },
    ],
  };
}
