import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import type { Asset } from '../api/client';
import { t } from '../lang/i18n';
import { canSearch, inCity } from '../state/config';
import { Icon } from '../ui/icons';
import type { Position } from './address';
import { addressAt } from './geocoder';
import { locate } from './locate';
import { Map } from './map';
import { PlaceSearch } from './place-search';
import type { Plot } from './plot';
import type { Found } from './search';

/** The address once a place has a name: the name of the place before is replaced, words that somebody wrote are not. */
export const renamed = (written: string, given: string, found: string): string => (written === '' || written === given ? found : written);

interface Options {
  address: string;
  /** An address that nobody has written here. */
  given?: string;
  onAddress(address: string): void;
  onPosition(position: Position): void;
}

export type Picking = ReturnType<typeof usePicking>;

/** A place that is chosen on the map, by the device or by its name. The map names it in turn. */
export function usePicking({ address, given: first = '', onAddress, onPosition }: Options) {
  const plot: RefObject<Plot | null> = useRef<Plot | null>(null);
  /** Without a map the device or words say where it is. */
  const [mapless, setMapless] = useState(false);
  const [problem, setProblem] = useState<'failed' | 'outside'>();
  const given = useRef(first);
  const now = useRef(address);
  now.current = address;
  const latest = useRef<Position>(undefined);
  // The plot is removed with the screen.
  useEffect(() => () => void (plot.current = null), []);

  const pick = ({ latitude, longitude }: Position, name?: string) => {
    const picked = { latitude: digits(latitude), longitude: digits(longitude) };
    const inside = inCity(picked);
    setProblem(inside ? undefined : 'outside');
    if (!inside) return;
    latest.current = picked;
    onPosition(picked);
    const call = (found: string) => {
      if (latest.current !== picked || renamed(now.current, given.current, found) !== found) return;
      given.current = now.current = found;
      onAddress(found);
    };
    if (name) return call(name);
    // The map knows the street at once; the geocoder, where there is one, the number.
    const known = plot.current?.addressOf(picked).then(call);
    void Promise.all([addressAt(picked), known]).then(([found]) => found !== '' && call(found));
  };
  const choose = ({ name, quarter, position, unknownNumber }: Found) => {
    plot.current?.moveTo(position);
    const street = unknownNumber ? `${name} ${unknownNumber}` : name;
    pick(position, [street, quarter].filter((part) => part !== '').join(', '));
    // The reader wrote the number: moving the pin to the house does not take it away.
    if (unknownNumber) given.current = '';
  };
  const pickHere = () => {
    setProblem(undefined);
    const found = (here: Position) => {
      if (inCity(here)) plot.current?.here(here);
      pick(here);
    };
    locate(found, () => setProblem('failed'), true);
  };
  return { plot, mapless, problem, pick, choose, pickHere, onFailed: () => setMapless(true) };
}

interface Props {
  picking: Picking;
  chosen: boolean;
  /** Where the map is at first; the city without it. */
  start: Position | undefined;
  /** Called with a thing of the city that was chosen, after its place. */
  onAsset(asset: Asset): void;
  children?: ComponentChildren;
}

/** The search and the map of a place that is being chosen; children are between them. */
export function PickMap({ picking: { plot, mapless, pick, choose, pickHere, onFailed }, chosen, start, onAsset, children }: Props) {
  return (
    <>
      {canSearch(mapless) && <PlaceSearch plot={plot} onFound={choose} />}
      {children}
      <Map
        label={t('map.pick')}
        chosen={chosen}
        onCenter={(position) => pick(position)}
        onAsset={(asset) => {
          plot.current?.moveTo(asset);
          pick(asset);
          onAsset(asset);
        }}
        onReady={(made) => {
          plot.current = made;
          if (start) made.moveTo(start);
        }}
        onFailed={onFailed}
      >
        {'geolocation' in navigator && (
          <button type="button" class="map-locate" onClick={pickHere}>
            <Icon name="here" /> {t('place.locate')}
          </button>
        )}
      </Map>
    </>
  );
}

/** Five digits are about a metre. */
function digits(degrees: number): number {
  return Number(degrees.toFixed(5));
}
