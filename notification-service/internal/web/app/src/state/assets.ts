/** Things of the city, such as lamps and bins, each with a code. */
import { must, reportService, type Asset } from '../api/client';

const NAME = /^[a-z0-9][a-z0-9-]{0,39}\/[A-Za-z0-9][A-Za-z0-9._-]{0,39}$/;
/** Further out a map would show too many. */
export const ASSETS_ZOOM = 17;

/** The thing of this layer and code; undefined if it is unknown, or the city has it no more. */
export async function findAsset(asset: string): Promise<Asset | undefined> {
  if (!NAME.test(asset)) return undefined;
  return (await must(reportService.GET('/map/assets', { params: { query: { asset } } }))).assets[0];
}

/** A thing, as far as a report knows it. */
export type Thing = Pick<Asset, 'asset' | 'name'> & Partial<Asset>;

/** The name of a thing, or else its code. */
export const assetLabel = ({ asset, name = '' }: Thing) => name || asset.slice(asset.indexOf('/') + 1);
