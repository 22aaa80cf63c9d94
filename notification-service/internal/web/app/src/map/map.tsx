import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import shared from 'virtual:maplibre-shared';

import { t } from '../lang/i18n';
import { config } from '../state/config';
import { preferences } from '../state/preferences';
import type { Cluster, Plot, PlotOptions, Point } from './plot';

interface Props extends PlotOptions {
  points?: Point[];
  clusters?: Cluster[];
  /** Called with the plot, for what properties cannot do. */
  onReady?(plot: Plot): void;
  /** Called if there is no map: without its code, and where the browser has no WebGL. */
  onFailed?(): void;
  /** Whether the place under the pin is the chosen one; the pin is pale until then. */
  chosen?: boolean;
  /** The parts that lie over the map, or where it would be. */
  children?: ComponentChildren;
}

/** After this time the map is loaded, however busy the page is. */
const IDLE_MS = 500;

/** Text comes first; not every browser says when it is idle. */
function whenIdle(task: () => void): void {
  if ('requestIdleCallback' in window) requestIdleCallback(task, { timeout: IDLE_MS });
  else setTimeout(task, IDLE_MS);
}

const NOTHING: never[] = [];

/** A map, once it is visible and its code is loaded. */
export function Map({ points = NOTHING, clusters = NOTHING, onReady, onFailed, chosen, children, ...options }: Props) {
  const element = useRef<HTMLDivElement>(null);
  const [plot, setPlot] = useState<Plot>();
  const [failed, setFailed] = useState(false);
  // Listeners may change; the plot stays.
  const latest = useRef(options);
  latest.current = options;

  useEffect(() => {
    let made: Plot | undefined;
    let removed = false;
    let loading = false;
    const create = ({ createPlot }: typeof import('./plot')) => {
      if (removed || !element.current) return;
      const { label, popup, onChoose, onMove, onCenter, onAsset } = latest.current;
      made = createPlot(element.current, {
        label,
        popup: popup && ((point) => latest.current.popup!(point)),
        onChoose: onChoose && ((point) => latest.current.onChoose!(point)),
        onMove: onMove && ((...moved) => latest.current.onMove?.(...moved)),
        onCenter: onCenter && ((position) => latest.current.onCenter?.(position)),
        onAsset: onAsset && ((asset) => latest.current.onAsset?.(asset)),
      });
      setPlot(made);
      onReady?.(made);
    };
    // Without a size it is hidden, as on a phone that shows the list.
    const sizes = new ResizeObserver(([entry]) => {
      made?.resize();
      if (loading || !entry?.contentRect.width) return;
      loading = true;
      whenIdle(() => {
        // The plot would request this only once it is there.
        if (shared) document.head.append(Object.assign(document.createElement('link'), { rel: 'modulepreload', href: shared }));
        void import('./plot').then(create).catch(() => {
          setFailed(true);
          onFailed?.();
        });
      });
    });
    sizes.observe(element.current!);
    return () => {
      removed = true;
      sizes.disconnect();
      made?.remove();
    };
  }, []);
  useEffect(() => plot?.show(points, clusters), [plot, points, clusters]);
  useEffect(() => void plot?.recolour(), [preferences.theme.value]);

  return (
    <div class="map" data-chosen={chosen} data-loading={t('loading')}>
      <div ref={element} class="map-canvas" />
      {children}
      {failed && <p class="empty">{t('map.failed')}</p>}
      {!failed && !config.map.tiles && <p class="map-note">{t('map.no-tiles')}</p>}
    </div>
  );
}
