/**
 * A map by Leaflet, loaded only where one is shown. Without tiles it is a
 * plot: the positions over a grid of degrees, with a scale.
 */
import L from 'leaflet';
import 'leaflet/dist/leaflet.css';

import type { Status } from '../api/client';
import { config } from '../state/config';
import { grid } from './grid';

export interface Point {
  id: string;
  label: string;
  status: Status;
  latitude: number;
  longitude: number;
}

export interface PlotOptions {
  label: string;
  onOpen?: ((id: string) => void) | undefined;
  onPick?: ((position: { latitude: number; longitude: number }) => void) | undefined;
  onMove?: ((bbox: string) => void) | undefined;
}

export type Plot = ReturnType<typeof createPlot>;

/** Where nothing says otherwise: Bandung, at the scale of a city. */
const HOME: L.LatLngExpression = [-6.9147, 107.6098];
const CITY = 13;
const STREET = 16;

export function createPlot(element: HTMLElement, { label, onOpen, onPick, onMove }: PlotOptions) {
  const map = L.map(element, { attributionControl: Boolean(config.tiles), zoomAnimation: false, fadeAnimation: false });
  if (config.tiles) map.attributionControl.setPrefix(false);
  map.setView(HOME, CITY);
  element.setAttribute('role', 'application');
  element.setAttribute('aria-label', label);
  if (config.tiles) L.tileLayer(config.tiles.url, { attribution: config.tiles.attribution }).addTo(map);
  else grid(map);
  L.control.scale({ imperial: false }).addTo(map);

  const points = L.layerGroup().addTo(map);
  let picked: L.CircleMarker | undefined;
  let placed = false;

  const dot = (p: { latitude: number; longitude: number }, className: string, radius = 7) =>
    L.circleMarker([p.latitude, p.longitude], { radius, className });

  if (onPick) {
    element.classList.add('picks');
    map.on('click', ({ latlng }) => onPick(rounded(latlng)));
  }
  if (onMove) map.on('moveend', () => onMove(bbox(map.getBounds())));

  return {
    show(shown: Point[]) {
      points.clearLayers();
      for (const point of shown) {
        const marker = dot(point, `dot ${point.status}`).bindTooltip(escaped(point.label)).addTo(points);
        if (onOpen) marker.on('click', () => onOpen(point.id));
      }
      if (placed || shown.length === 0) return;
      placed = true;
      map.fitBounds(L.latLngBounds(shown.map((p) => [p.latitude, p.longitude])), { padding: [24, 24], maxZoom: STREET });
    },
    pick(position: { latitude: number; longitude: number } | undefined) {
      picked?.remove();
      picked = position && dot(position, 'dot picked', 9).addTo(map);
      if (!position) return;
      const place: L.LatLngExpression = [position.latitude, position.longitude];
      if (!placed || !map.getBounds().contains(place)) map.setView(place, Math.max(map.getZoom(), STREET));
      placed = true;
    },
    center: () => rounded(map.getCenter()),
    resize: () => map.invalidateSize(),
    remove: () => map.remove(),
  };
}

/** Leaflet takes a tooltip's text for HTML, and a title is anyone's text. */
function escaped(text: string): HTMLElement {
  const element = document.createElement('span');
  element.textContent = text;
  return element;
}

/** To five digits: about a metre, and no more than is known. */
function rounded({ lat, lng }: L.LatLng) {
  const wrapped = L.latLng(lat, lng).wrap();
  return { latitude: Number(wrapped.lat.toFixed(5)), longitude: Number(wrapped.lng.toFixed(5)) };
}

function bbox(bounds: L.LatLngBounds): string {
  const within = (value: number, most: number) => Math.min(most, Math.max(-most, value)).toFixed(5);
  const { lat: south, lng: west } = bounds.getSouthWest();
  const { lat: north, lng: east } = bounds.getNorthEast();
  return [within(west, 180), within(south, 90), within(east, 180), within(north, 90)].join(',');
}
