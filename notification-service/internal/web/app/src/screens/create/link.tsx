/**
 * Addresses that open the form with what is known, such as /new?asset=lamps/L-0042 of the code on a lamp, or
 * /new?lat=-6.59&lng=106.8&category=2 of a page of the city. All parts are optional, and nothing is filed by them.
 */
import { t } from '../../lang/create';
import type { Position } from '../../map/address';
import { addressAt } from '../../map/geocoder';
import { findAsset } from '../../state/assets';
import { categories, inUse, loadCategories, loadOffered, offered } from '../../state/categories';
import { inCity } from '../../state/config';
import { draft, ofAsset, updateDraft, type Draft } from '../../state/draft';

const DEGREES = /^-?\d{1,3}(\.\d+)?$/;

/**
 * Puts what the address says into the draft, once; the words of the draft stay. Returns what is wrong with
 * the address, and the first step that it does not answer.
 */
export async function openLink(query: URLSearchParams): Promise<{ faults: string[]; step: string }> {
  const link = ['lat', 'lng', 'category', 'asset'].map((name) => query.get(name) ?? '').join();
  const before = draft.value;
  const fresh = before.link !== link;
  const said: Partial<Draft> = { link };
  const wrong = new Map<'place' | 'category' | 'asset', string>();
  if (inUse.value.length === 0) await loadCategories();

  const code = query.get('asset');
  const asset = code === null ? undefined : await findAsset(code);
  if (asset) Object.assign(said, ofAsset(asset), { position: { latitude: asset.latitude, longitude: asset.longitude }, address: '' });
  else if (code !== null && (fresh || !before.asset)) wrong.set('asset', t('link.asset', { code }));

  if (query.has('lat') || query.has('lng')) {
    const [latitude, longitude] = ['lat', 'lng'].map((name) => (DEGREES.test(query.get(name) ?? '') ? Number(query.get(name)) : NaN));
    const position = { latitude: latitude!, longitude: longitude! };
    const known = Math.abs(latitude!) <= 90 && Math.abs(longitude!) <= 180;
    if (known && inCity(position)) Object.assign(said, { position, address: '' });
    else if (fresh || !before.position) wrong.set('place', t(known ? 'link.outside' : 'link.place'));
  }

  const category = query.get('category');
  const known = inUse.value.find(({ id }) => String(id) === category);
  if (known) said.category_id = known.id;
  else if (category !== null && (fresh || !before.category_id)) wrong.set('category', t('link.category'));

  if (fresh) {
    // A thing of the address before would not be at this place.
    const { asset: _, ...rest } = draft.value;
    draft.value = { ...(said.position ? rest : draft.value), ...said };
    if (said.position) void nameOf(said.position, link);
  }
  const { position, category_id } = draft.value;
  await loadOffered(position);
  const open = offered.value.some(({ id, accepts_reports }) => id === category_id && accepts_reports);
  const step = !position || wrong.has('place') ? '' : !open || wrong.has('category') ? '2' : '3';
  return { faults: [...wrong.values()], step };
}

async function nameOf(position: Position, link: string | undefined): Promise<void> {
  const address = await addressAt(position);
  if (address && draft.value.link === link && draft.value.address === '') updateDraft({ address });
}

/** The place and the category that the address has said. */
export function Known() {
  const { category_id, address, asset } = draft.value;
  const name = categories.value.find(({ id }) => id === category_id)?.name;
  return (
    <p class="quiet">
      {t('link.known')} {[name, asset?.label, address].filter(Boolean).join(' · ')}
    </p>
  );
}
