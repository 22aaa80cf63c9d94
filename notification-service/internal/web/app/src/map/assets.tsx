import { render } from 'preact';

import { must, reportService, type Asset } from '../api/client';
import { t } from '../lang/create';
import { assetLabel } from '../state/assets';
import { session } from '../state/session';

/** The things in a part of the map. */
export async function assetsIn(bbox: string): Promise<Asset[]> {
  return (await must(reportService.GET('/map/assets', { params: { query: { bbox } } }))).assets;
}

/** The name of the button of a thing, which chooses it or shows what is reported of it. */
export const nameOf = (asset: Asset, choose: boolean) => (choose ? t('asset.choose', { name: assetLabel(asset) }) : assetLabel(asset));

/** A thing in the map's popup: the open report on it, and for residents a way to file one. */
export function describe({ asset, name, report }: Asset): HTMLElement {
  const element = document.createElement('div');
  const reports = location.pathname.startsWith('/queue') ? '/queue?status=all&report=' : '/reports/';
  render(
    <div class="popup">
      <strong>{name ? `${name} (${asset})` : asset}</strong>
      {report ? <a href={reports + report.id}>{report.title}</a> : <span class="quiet">{t('asset.unreported')}</span>}
      {(session.value?.role ?? 'resident') === 'resident' && <a href={`/new?asset=${asset}`}>{t('asset.report')}</a>}
    </div>,
    element,
  );
  return element;
}
