/** How far the service is with photos that the user has uploaded, while it looks at them. */
import { signal } from '@preact/signals';

import { onStream } from '../live/live';

/** The stages, and how much is done at each, in percent. */
export const STAGES = { checking: 25, scanning: 50, resizing: 75 } as const;

export type Stage = keyof typeof STAGES;

/** By the ids of the photos: those of this visit. */
export const stages = signal<Readonly<Record<string, Stage | undefined>>>({});

/** Notes a stage that the service reports. It reports each stage once, also while nobody listens. */
export function subscribeToStages(): void {
  onStream('notifications', ({ type, data }) => {
    if (type !== 'progress') return;
    const { photo_id, stage } = data as { photo_id: string; stage: string };
    if (Object.hasOwn(STAGES, stage)) stages.value = { ...stages.value, [photo_id]: stage as Stage };
  });
}
