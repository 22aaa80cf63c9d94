import { useEffect, useRef, useState } from 'preact/hooks';

import { t } from '../../lang/i18n';
import { addressAt } from '../../map/geocoder';
import { Map } from '../../map/map';
import { PlaceSearch } from '../../map/place-search';
import type { Plot } from '../../map/plot';
import { canSearch, inCity } from '../../state/config';
import { draft, updateDraft } from '../../state/draft';
import { Icon } from '../../ui/icons';
import { Modal } from '../../ui/modal';
import { FieldFault } from './field-fault';

/** A device without a position after this time will not get one. */
const LOCATE_MS = 15_000;

type Position = { latitude: number; longitude: number };

interface Props {
  /** Whether to ask what to do about a report that has no place yet. */
  asking: boolean;
  /** The answer; with `goOn` the next step follows. */
  onAnswer(goOn: boolean): void;
}

/** Whether the report says where the problem is, on the map or in words. */
export const hasPlace = () => draft.value.position !== undefined || draft.value.address.trim() !== '';

/**
 * The place of the problem: under the pin in the map's middle once the reader has
 * moved the map, by keyboard, by the device or in words.
 */
export function Place({ asking, onAnswer }: Props) {
  const plot = useRef<Plot | null>(null);
  /** Without a map the device or words say where it is. */
  const [mapless, setMapless] = useState(false);
  const [problem, setProblem] = useState<'failed' | 'outside'>();
  /** The map's name of the place: it may be replaced, words that somebody wrote may not. */
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
    if (name) return call(name);
    // The map knows the street at once; the geocoder, where there is one, the number.
    const known = plot.current?.addressOf(picked).then(call);
    void Promise.all([addressAt(picked), known]).then(([found]) => found !== '' && call(found));
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
      <p class="quiet">{t(mapless ? 'place.hint.mapless' : 'place.hint')}</p>
      {canSearch(mapless) && (
        <PlaceSearch
          plot={plot}
          onFound={({ name, quarter, position: found, unknownNumber }) => {
            plot.current?.moveTo(found);
            const street = unknownNumber ? `${name} ${unknownNumber}` : name;
            pick(
              { latitude: digits(found.latitude), longitude: digits(found.longitude) },
              [street, quarter].filter((part) => part !== '').join(', '),
            );
            // The reader wrote the number: moving the pin to the house does not take it away.
            if (unknownNumber) fromMap.current = '';
          }}
        />
      )}
      <Map
        label={t('map.pick')}
        chosen={position !== undefined}
        onCenter={(position) => pick(position)}
        onReady={ready}
        onFailed={() => setMapless(true)}
      >
        {'geolocation' in navigator && (
          <button type="button" class="map-locate" onClick={locate}>
            <Icon name="here" /> {t('place.locate')}
          </button>
        )}
      </Map>
      <div class="bar spread">
        <p class={problem ? 'fault' : 'quiet'} role="status">
          {problem
            ? t(mapless ? `place.${problem}.mapless` : `place.${problem}`)
            : position
              ? `✓ ${address || t(mapless ? 'place.located' : 'place.pinned')}`
              : t('place.none')}
        </p>
        {position && (
          <button type="button" class="link" onClick={forget}>
            {t('place.forget')}
          </button>
        )}
      </div>
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
      {asking && (
        <Modal title={t('place.ask')} onClose={() => onAnswer(false)}>
          <p>{t('place.ask.hint')}</p>
          <div class="bar">
            {plot.current && (
              <button
                type="button"
                class="primary"
                data-first
                onClick={() => {
                  pick(plot.current!.center());
                  onAnswer(hasPlace());
                }}
              >
                {t('place.ask.pin')}
              </button>
            )}
            <button type="button" onClick={() => onAnswer(true)}>
              {t('place.ask.without')}
            </button>
          </div>
        </Modal>
      )}
    </>
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
