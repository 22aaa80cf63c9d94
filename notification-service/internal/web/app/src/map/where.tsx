import type { Task } from '../api/client';
import { t } from '../lang/i18n';
import { Directions } from './directions';
import { Map } from './map';
import { located } from './points';

type Placed = Parameters<typeof located>[0] & Pick<Task, 'address' | 'asset' | 'asset_name'>;

/** Whether anything is known of the place of a report. */
export const hasPlace = (report: Placed) => located(report).length > 0 || Boolean(report.address || report.asset);

/** Where a report is: the thing of the city, the address and the map, near enough to show the thing. Another place is another map. */
export function Where({ report }: { report: Placed }) {
  const { address, asset, asset_name: name } = report;
  const points = located(report);
  return (
    <>
      {asset && <p>{name ? `${name} (${asset})` : asset}</p>}
      {address && <p>{address}</p>}
      {points[0] && (
        <div class="where-map">
          <Map
            key={[asset, points[0].latitude, points[0].longitude].join()}
            label={t('map.of-report')}
            points={points}
            onReady={(plot) => (asset ? plot.moveTo(points[0]!) : plot.lookAt(points))}
          />
          <Directions points={points} />
        </div>
      )}
    </>
  );
}
