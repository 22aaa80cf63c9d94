/** Lines of latitude and longitude for a map that has no tiles. */
import L from 'leaflet';

const STEPS = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 90];
/** The distance between lines that leaves room for labels, in pixels. */
const SPACING = 90;
/** Nearer to the top, a row's label would overlap a column's. */
const CORNER = 32;

/** Draws the grid under everything else, and again whenever the map moves. */
export function grid(map: L.Map): void {
  const pane = map.createPane('grid');
  pane.style.zIndex = '250';
  const layer = L.layerGroup().addTo(map);
  const draw = () => {
    layer.clearLayers();
    const bounds = map.getBounds();
    const [south, north] = [bounds.getSouth(), bounds.getNorth()];
    const [west, east] = [bounds.getWest(), bounds.getEast()];
    const { x: width, y: height } = map.getSize();
    for (const { at, label } of ticks(south, north, height)) {
      line(
        [
          [at, west],
          [at, east],
        ],
        layer,
      );
      const fromTop = ((north - at) / (north - south)) * height;
      if (fromTop > CORNER) writeLabel([at, east], `${label}° ${at < 0 ? 'S' : 'N'}`, 'row', layer);
    }
    for (const { at, label } of ticks(west, east, width)) {
      line(
        [
          [south, at],
          [north, at],
        ],
        layer,
      );
      writeLabel([north, at], `${label}° ${at < 0 ? 'W' : 'E'}`, 'column', layer);
    }
  };
  map.on('moveend resize', draw);
  map.whenReady(draw);
}

/** Round degrees between two edges, at least SPACING pixels apart. */
function ticks(from: number, to: number, pixels: number): { at: number; label: string }[] {
  const step = STEPS.find((s) => (s / (to - from)) * pixels >= SPACING) ?? STEPS.at(-1)!;
  const digits = Math.max(0, Math.ceil(-Math.log10(step)));
  const first = Math.ceil(from / step);
  const count = Math.max(0, Math.floor(to / step) - first + 1);
  return Array.from({ length: count }, (_, i) => {
    const at = (first + i) * step;
    return { at, label: Math.abs(at).toFixed(digits) };
  });
}

function line(ends: L.LatLngExpression[], layer: L.LayerGroup): void {
  L.polyline(ends, { pane: 'grid', className: 'grid-line', interactive: false, weight: 1 }).addTo(layer);
}

function writeLabel(at: L.LatLngExpression, text: string, kind: string, layer: L.LayerGroup): void {
  const icon = L.divIcon({ html: text, className: `grid-mark ${kind}`, iconSize: [0, 0] });
  L.marker(at, { pane: 'grid', icon, interactive: false, keyboard: false }).addTo(layer);
}
