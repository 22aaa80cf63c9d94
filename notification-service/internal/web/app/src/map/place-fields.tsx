import { t } from '../lang/i18n';
import { assetLabel, type Thing } from '../state/assets';
import { Field } from '../ui/field';
import type { Position } from './address';
import { About } from './about';
import { PickMap, usePicking } from './picking';

/** Where something is, and which thing of the city it is. */
export interface Place {
  address: string;
  position?: Position | undefined;
  thing?: Thing | undefined;
}

interface Props {
  place: Place;
  /** The first area of the map; the city without one. */
  start: Position | undefined;
  onPlace(part: Partial<Place>): void;
}

/** A place on the map and its address, which the map fills in unless it is typed here. */
export function PlaceFields({ place: { address, position, thing }, start, onPlace }: Props) {
  const picking = usePicking({
    address,
    given: address,
    onAddress: (address) => onPlace({ address }),
    // Another place is not the thing's.
    onPosition: (position) => onPlace({ position, thing: undefined }),
  });
  return (
    <>
      <PickMap picking={picking} chosen={position !== undefined} start={start} onAsset={(asset) => onPlace({ thing: asset })}>
        {thing && <About label={assetLabel(thing)} onForget={() => onPlace({ thing: undefined })} />}
      </PickMap>
      {picking.problem && (
        <p class="fault" role="status">
          {t(picking.mapless ? `place.${picking.problem}.mapless` : `place.${picking.problem}`)}
        </p>
      )}
      <Field label={t('place.address')} maxLength={300} value={address} onValue={(address) => onPlace({ address })} />
    </>
  );
}
