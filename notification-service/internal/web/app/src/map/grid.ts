/** Lines of latitude and longitude for a map that has no tiles. */
import L from 'leaflet';

const STEPS = [30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001];
/** About so many lines each way. */
const LINES = 5;

/** Draws the grid under everything else, and anew whenever the map moves. */
export function grid(map: L.Map): void {
  const pane = map.createPane('grid');
  pane.style.zIndex = '250';
  const layer = L.layerGroup().addTo(map);
  const draw = () => {
    layer.clearLayers();
    const bounds = map.getBounds();
    const step = STEPS.find((s) => s <= (bounds.getNorth() - bounds.getSouth()) / LINES) ?? STEPS.at(-1)!;
    const digits = Math.max(0, Math.ceil(-Math.log10(step)));
    for (const lat of ticks(bounds.getSouth(), bounds.getNorth(), step)) {
      line([[lat, bounds.getWest()], [lat, bounds.getEast()]], layer);
      mark([lat, bounds.getWest()], `${Math.abs(lat).toFixed(digits)}° ${lat < 0 ? 'S' : 'N'}`, 'row', layer);
    }
    for (const lng of ticks(bounds.getWest(), bounds.getEast(), step)) {
      line([[bounds.getSouth(), lng], [bounds.getNorth(), lng]], layer);
      mark([bounds.getNorth(), lng], `${Math.abs(lng).toFixed(digits)}° ${lng < 0 ? 'W' : 'E'}`, 'column', layer);
    }
  };
  map.on('moveend resize', draw);
  map.whenReady(draw);
}

function ticks(from: number, to: number, step: number): number[] {
  const first = Math.ceil(from / step);
  const count = Math.max(0, Math.floor(to / step) - first + 1);
  return Array.from({ length: count }, (_, i) => (first + i) * step);
}

function line(ends: L.LatLngExpression[], layer: L.LayerGroup): void {
  L.polyline(ends, { pane: 'grid', className: 'grid-line', interactive: false, weight: 1 }).addTo(layer);
}

function mark(at: L.LatLngExpression, text: string, kind: string, layer: L.LayerGroup): void {
  const icon = L.divIcon({ html: text, className: `grid-mark ${kind}`, iconSize: [0, 0] });
  L.marker(at, { pane: 'grid', icon, interactive: false, keyboard: false }).addTo(layer);
}
