import { useRef, useState } from 'preact/hooks';

import { t } from '../../lang/i18n';
import { Map } from '../../map/map';
import type { Plot } from '../../map/plot';
import { draft, updateDraft } from '../../state/draft';
import { Icon } from '../../ui/icons';

/** A device that has no position by then will not get one. */
const LOCATE_MS = 15_000;

/** The place of the problem: by a click, by keyboard, by the device or in words. */
export function Place() {
  const plot = useRef<Plot | null>(null);
  const [failed, setFailed] = useState(false);
  const { position, address } = draft.value;
  const pick = (picked: { latitude: number; longitude: number }) => updateDraft({ position: picked });
  const locate = () => {
    setFailed(false);
    navigator.geolocation.getCurrentPosition(
      ({ coords }) => pick({ latitude: digits(coords.latitude), longitude: digits(coords.longitude) }),
      () => setFailed(true),
      { enableHighAccuracy: true, timeout: LOCATE_MS },
    );
  };
  return (
    <fieldset class="bare place">
      <legend>{t('place')}</legend>
      <p class="quiet">{t('place.hint')}</p>
      <Map label={t('map.pick')} picked={position} onPick={pick} onReady={(ready) => (plot.current = ready)} />
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
      <p class="quiet" role="status">
        {failed ? t('place.failed') : position ? t('place.at', { at: `${position.latitude}, ${position.longitude}` }) : t('place.none')}
      </p>
      <label class="field">
        <span>{t('place.address')}</span>
        <input
          maxLength={300}
          autocomplete="street-address"
          value={address}
          onInput={(e) => updateDraft({ address: e.currentTarget.value })}
        />
      </label>
    </fieldset>
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
