import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { t, tn } from '../lang/i18n';
import { config } from '../state/config';
import { findAddresses, joined } from './geocoder';
import type { Plot } from './plot';
import type { Found } from './search';

/** Typing pauses this long before the geocoder is queried; the map's own names are searched at once. */
const TYPED_MS = 400;

interface Props {
  /** The map that is searched, once there is one. */
  plot: RefObject<Plot | null>;
  disabled?: boolean;
  onFound(found: Found): void;
}

/**
 * Finds a street or a quarter by its name on the part of the city that the map
 * shows, and what the city's geocoder knows.
 */
export function PlaceSearch({ plot, disabled = false, onFound }: Props) {
  const [text, setText] = useState('');
  const [found, setFound] = useState<Found[]>();
  const wanted = useRef('');
  const timer = useRef<number | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const search = (typed: string) => {
    setText(typed);
    wanted.current = typed;
    if (typed.trim().length < 2) return setFound(undefined);
    // Text that was typed during the search starts its own search.
    const isWanted = () => wanted.current === typed;
    clearTimeout(timer.current);
    void (plot.current?.find(typed) ?? Promise.resolve([])).then((places) => {
      if (!isWanted()) return;
      if (places.length > 0 || !config.map.geocoder) setFound(places);
      timer.current = window.setTimeout(() => {
        void findAddresses(typed).then((others) => isWanted() && setFound(joined(places, others)));
      }, TYPED_MS);
    });
  };
  const choose = (place: Found) => {
    wanted.current = '';
    setText('');
    setFound(undefined);
    onFound(place);
  };
  const unknown = found?.[0]?.unknownNumber;
  const label = t(config.map.geocoder ? 'place.search-address' : 'place.search');
  return (
    <div class="stack place-search">
      <label class="field">
        <span>{label}</span>
        <input
          type="search"
          placeholder={label}
          disabled={disabled}
          form="none" // of the report's, which Enter would send on
          maxLength={100}
          autocomplete="off"
          enterkeyhint="search"
          value={text}
          onInput={(e) => search(e.currentTarget.value)}
          onKeyDown={(e) => {
            if (e.key !== 'Enter') return;
            e.preventDefault();
            if (found?.[0]) choose(found[0]);
          }}
        />
      </label>
      <div role="status">
        {found?.length === 0 && <small class="quiet">{t(config.map.geocoder ? 'place.search-nothing' : 'place.search-none')}</small>}
        {found && found.length > 0 && <span class="hidden">{tn('place.search-found', found.length)}</span>}
      </div>
      {found && found.length > 0 && (
        <ul class="rows">
          {found.map((place) => (
            <li key={`${place.name} ${place.position.latitude}`}>
              <button type="button" class="link" onClick={() => choose(place)}>
                {place.name}
                {place.unknownNumber && ` ${place.unknownNumber}`}
                {place.quarter && <span class="quiet">{place.quarter}</span>}
              </button>
            </li>
          ))}
        </ul>
      )}
      {unknown && <small class="quiet">{t('place.no-number', { number: unknown })}</small>}
    </div>
  );
}
