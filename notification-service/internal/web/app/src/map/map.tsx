import { useEffect, useRef, useState } from 'preact/hooks';

import { t } from '../lang/i18n';
import type { Plot, PlotOptions, Point } from './plot';

interface Props extends PlotOptions {
  points?: Point[];
  picked?: { latitude: number; longitude: number } | undefined;
  /** Gives the plot to whoever holds more than properties can say. */
  onReady?(plot: Plot): void;
}

/** After so long the map is begun, however busy the page is. */
const IDLE_MS = 500;

/** What everybody reads comes first; not every browser says when it is idle. */
function whenIdle(task: () => void): void {
  if ('requestIdleCallback' in window) requestIdleCallback(task, { timeout: IDLE_MS });
  else setTimeout(task, IDLE_MS);
}

/** A map, once it is to be seen and its code has come. */
export function Map({ points = [], picked, onReady, ...options }: Props) {
  const element = useRef<HTMLDivElement>(null);
  const [plot, setPlot] = useState<Plot>();
  const [failed, setFailed] = useState(false);
  // What a listener does may change, the plot stays.
  const latest = useRef(options);
  latest.current = options;

  useEffect(() => {
    let made: Plot | undefined;
    let gone = false;
    let begun = false;
    const create = ({ createPlot }: typeof import('./plot')) => {
      if (gone || !element.current) return;
      const { label, onOpen, onPick, onMove } = latest.current;
      made = createPlot(element.current, {
        label,
        onOpen: onOpen && ((id) => latest.current.onOpen?.(id)),
        onPick: onPick && ((position) => latest.current.onPick?.(position)),
        onMove: onMove && ((bbox) => latest.current.onMove?.(bbox)),
      });
      setPlot(made);
      onReady?.(made);
    };
    // Without a size it is hidden, as on a phone that shows the list.
    const sizes = new ResizeObserver(([entry]) => {
      made?.resize();
      if (begun || !entry?.contentRect.width) return;
      begun = true;
      whenIdle(() => void import('./plot').then(create, () => setFailed(true)));
    });
    sizes.observe(element.current!);
    return () => {
      gone = true;
      sizes.disconnect();
      made?.remove();
    };
  }, []);
  useEffect(() => plot?.show(points), [plot, points]);
  useEffect(() => plot?.pick(picked), [plot, picked?.latitude, picked?.longitude]);

  return (
    <div class="map">
      <div ref={element} class="map-canvas" />
      {failed && <p class="empty">{t('map.failed')}</p>}
    </div>
  );
}
