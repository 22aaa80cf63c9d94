import { useState } from 'preact/hooks';

import type { Correction, Report } from '../api/client';
import { PlaceFields, type Place } from './place-fields';

type Placed = Pick<Report, 'address' | 'latitude' | 'longitude' | 'asset' | 'asset_name'>;

/** The place of a report as it is being corrected, and what of it differs. */
export function useAnotherPlace({ address, latitude, longitude, asset, asset_name: name }: Placed) {
  const [place, setPlace] = useState<Place>({ address, thing: asset ? { asset, ...(name && { name }) } : undefined });
  const change: Correction = {
    ...(place.address.trim() !== address && { address: place.address.trim() }),
    ...place.position,
    ...(place.thing?.asset !== asset && { asset: place.thing?.asset ?? '' }),
  };
  return {
    change,
    place,
    start: latitude !== undefined && longitude !== undefined ? { latitude, longitude } : undefined,
    onPlace: (part: Partial<Place>) => setPlace((was) => ({ ...was, ...part })),
  };
}

/** The fields for it, whose map is loaded when they are opened. */
export function AnotherPlace({ title, of }: { title: string; of: ReturnType<typeof useAnotherPlace> }) {
  const [opened, setOpened] = useState(false);
  return (
    <details onToggle={(event) => event.currentTarget.open && setOpened(true)}>
      <summary>{title}</summary>
      <div class="stack">{opened && <PlaceFields {...of} />}</div>
    </details>
  );
}
