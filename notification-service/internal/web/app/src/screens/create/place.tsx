import { useEffect, useRef, useState } from 'preact/hooks';

import { t, tn } from '../../lang/i18n';
import { Map } from '../../map/map';
import type { Plot } from '../../map/plot';
import type { Found } from '../../map/search';
import { config, inCity } from '../../state/config';
import { draft, updateDraft } from '../../state/draft';
import { Icon } from '../../ui/icons';
import { FieldFault } from './field-fault';

/** A device that has no position by then will not get one. */
const LOCATE_MS = 15_000;

type Position = { latitude: number; longitude: number };

/** The place of the problem: under the pin in the map's middle, by keyboard, by the device or in words. */
export function Place() {
  const plot = useRef<Plot | null>(null);
  const [problem, setProblem] = useState<'failed' | 'outside'>();
  /** What the map called the place: it may be replaced, what somebody wrote may not. */
  const fromMap = useRef('');
  const { position, address } = draft.value;

  const pick = (picked: Position, name?: string) => {
    if (!inCity(picked)) return setProblem('outside');
    setProblem(undefined);
    updateDraft({ position: picked });
    const call = (found: string) => {
      const now = draft.value;
      if (now.position !== picked || (now.address !== '' && now.address !== fromMap.current)) return;
      fromMap.current = found;
      updateDraft({ address: found });
    };
    if (name) call(name);
    else void plot.current?.addressOf(picked).then(call);
  };
  const locate = () => {
    setProblem(undefined);
    navigator.geolocation.getCurrentPosition(
      ({ coords }) => {
        const here = { latitude: digits(coords.latitude), longitude: digits(coords.longitude) };
        if (inCity(here)) {
          plot.current?.here(here);
          plot.current?.moveTo(here);
        }
        pick(here);
      },
      () => setProblem('failed'),
      { enableHighAccuracy: true, timeout: LOCATE_MS },
    );
  };
  const ready = (made: Plot) => {
    plot.current = made;
    if (draft.value.position) made.moveTo(draft.value.position);
  };
  // The plot is removed with the screen.
  useEffect(() => () => void (plot.current = null), []);
  return (
    <>
      <p class="quiet">{t('place.hint')}</p>
      {config.map.tiles && (
        <Search
          find={async (text) => (await plot.current?.find(text)) ?? []}
          onFound={({ name, quarter, position: found }) => {
            plot.current?.moveTo(found);
            pick(
              { latitude: digits(found.latitude), longitude: digits(found.longitude) },
              [name, quarter].filter((part) => part !== '').join(', '),
            );
          }}
        />
      )}
      <Map label={t('map.pick')} onCenter={(position) => pick(position)} onReady={ready} />
      <div class="bar">
        {'geolocation' in navigator && (
          <button type="button" onClick={locate}>
            <Icon name="here" /> {t('place.locate')}
          </button>
        )}
        <button type="button" onClick={() => plot.current && pick(plot.current.center())}>
          {t('place.centre')}
        </button>
        {position && (
          <button type="button" class="link" onClick={forget}>
            {t('place.forget')}
          </button>
        )}
      </div>
      <p class={problem ? 'fault' : 'quiet'} role="status">
        {problem
          ? t(`place.${problem}`)
          : position
            ? t('place.at', { at: `${position.latitude}, ${position.longitude}` })
            : t('place.none')}
      </p>
      <FieldFault pointers={['/latitude', '/longitude']} />
      <label class="field">
        <span>{t('place.address')}</span>
        <input
          maxLength={300}
          autocomplete="street-address"
          value={address}
          onInput={(e) => updateDraft({ address: e.currentTarget.value })}
        />
        <FieldFault pointers={['/address']} />
      </label>
    </>
  );
}

interface SearchProps {
  find(text: string): Promise<Found[]>;
  onFound(found: Found): void;
}

/** Finds a street or a quarter by its name, on the part of the city that the map shows. */
function Search({ find, onFound }: SearchProps) {
  const [text, setText] = useState('');
  const [found, setFound] = useState<Found[]>();
  const wanted = useRef('');
  const search = (typed: string) => {
    setText(typed);
    wanted.current = typed;
    if (typed.trim().length < 2) return setFound(undefined);
    // What was typed meanwhile is looked for by itself.
    void find(typed).then((places) => wanted.current === typed && setFound(places));
  };
  const choose = (place: Found) => {
    setText('');
    setFound(undefined);
    onFound(place);
  };
  return (
    <div class="stack place-search">
      <label class="field">
        <span>{t('place.search')}</span>
        <input
          type="search"
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
        {found?.length === 0 && <small class="quiet">{t('place.search-none')}</small>}
        {found && found.length > 0 && <span class="hidden">{tn('place.search-found', found.length)}</span>}
      </div>
      {found && found.length > 0 && (
        <ul class="rows">
          {found.map((place) => (
            <li key={`${place.name} ${place.position.latitude}`}>
              <button type="button" class="link" onClick={() => choose(place)}>
                {place.name}
                {place.quarter && <span class="quiet">{place.quarter}</span>}
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function forget(): void {
  const { position: _, ...rest } = draft.value;
  draft.value = rest;
}

/** Five digits are about a metre. */
function digits(degrees: number): number {
  return Number(degrees.toFixed(5));
}
