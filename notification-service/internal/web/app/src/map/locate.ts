import type { Position } from './address';

/** A device without a position after this time will not get one. */
const LOCATE_MS = 15_000;

/** Asks the device where it is. */
export function locate(found: (at: Position) => void, lost: () => void, enableHighAccuracy = false): void {
  const options = { enableHighAccuracy, timeout: LOCATE_MS };
  navigator.geolocation.getCurrentPosition(({ coords: { latitude, longitude } }) => found({ latitude, longitude }), lost, options);
}
