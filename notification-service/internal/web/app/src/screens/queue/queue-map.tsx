import { render } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';

import type { Task } from '../../api/client';
import { number, t } from '../../lang/queue';
import { located } from '../../map/points';
import { Map } from '../../map/map';
import type { Plot } from '../../map/plot';
import { Badge } from '../../ui/badge';

interface Props {
  tasks: Task[];
  /** How many there are, also on pages that are not loaded. */
  total: number;
  /** Of the filters: other ones are looked at as a whole. */
  filtered: string;
  onOpen(id: string): void;
}

/** Where the reports of the list are, and that it has more, if it has. */
export function QueueMap({ tasks, total, filtered, onOpen }: Props) {
  const plot = useRef<Plot>(undefined);
  const where = JSON.stringify(tasks.map(({ id, status, latitude, longitude }) => [id, status, latitude, longitude]));
  const points = useMemo(() => tasks.flatMap(located), [where]);
  const looked = useRef('');
  const look = () => {
    if (!plot.current || points.length === 0 || looked.current === filtered) return;
    looked.current = filtered;
    plot.current.lookAt(points, true);
  };
  useEffect(look, [filtered, points]);
  const describe = ({ id, label, status }: { id: string; label: string; status: Task['status'] }) => {
    const element = document.createElement('div');
    render(
      <div class="popup">
        <button type="button" class="link" onClick={() => onOpen(id)}>
          {label}
        </button>
        <Badge status={status} />
      </div>,
      element,
    );
    return element;
  };
  return (
    <div class="queue-map">
      <Map
        label={t('map.of-reports')}
        points={points}
        popup={describe}
        onReady={(made) => {
          plot.current = made;
          look();
        }}
      />
      {tasks.length < total && <p class="quiet">{t('work.map-part', { shown: number(tasks.length), total: number(total) })}</p>}
    </div>
  );
}
