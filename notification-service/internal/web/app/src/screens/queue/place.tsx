import { useEffect, useRef, useState } from 'preact/hooks';

import { t } from '../../lang/queue';
import { addressAt } from '../../map/geocoder';
import { Map } from '../../map/map';
import { PlaceSearch } from '../../map/place-search';
import type { Plot } from '../../map/plot';
import { canSearch, inCity } from '../../state/config';

export type Position = { latitude: number; longitude: number };

interface Props {
  address: string;
  position: Position | undefined;
  /** The first area of the map; the city without one. */
  start?: Position | undefined;
  onAddress(address: string): void;
  onPosition(position: Position): void;
}

/** A place on the map and its address, which the map fills in unless it is typed here. */
export function PlaceFields({ address, position, start, onAddress, onPosition }: Props) {
  const [outside, setOutside] = useState(false);
  const [mapless, setMapless] = useState(false);
  const plot = useRef<Plot | null>(null);
  /** The name of the place by the report or the map: it may be replaced, words that are typed here may not. */
  const given = useRef(address);
  const now = useRef(address);
  now.current = address;
  const latest = useRef<Position>(undefined);
  useEffect(() => () => void (plot.current = null), []);

  const pick = (picked: Position) => {
    setOutside(!inCity(picked));
    if (!inCity(picked)) return;
    latest.current = picked;
    onPosition(picked);
    const call = (found: string) => {
      if (latest.current !== picked || now.current !== given.current) return;
      given.current = found;
      now.current = found;
      onAddress(found);
    };
    const known = plot.current?.addressOf(picked).then(call);
    void Promise.all([addressAt(picked), known]).then(([found]) => found !== '' && call(found));
  };
  return (
    <>
      {canSearch(mapless) && (
        <PlaceSearch
          plot={plot}
          onFound={({ name, quarter, position: found, unknownNumber }) => {
            plot.current?.moveTo(found);
            const street = unknownNumber ? `${name} ${unknownNumber}` : name;
            given.current = [street, quarter].filter((part) => part !== '').join(', ');
            now.current = given.current;
            onAddress(given.current);
            pick(found);
            // The official wrote the number: the house below the pin does not take it away.
            if (unknownNumber) given.current = '';
          }}
        />
      )}
      <Map
        label={t('map.pick')}
        chosen={position !== undefined}
        onCenter={pick}
        onReady={(made: Plot) => {
          plot.current = made;
          if (start) made.moveTo(start);
        }}
        onFailed={() => setMapless(true)}
      />
      {outside && (
        <p class="fault" role="status">
          {t('place.outside')}
        </p>
      )}
      <label class="field">
        <span>{t('correct.address')}</span>
        <input maxLength={300} value={address} onInput={(event) => onAddress(event.currentTarget.value)} />
      </label>
    </>
  );
}
