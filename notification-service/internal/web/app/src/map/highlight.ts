/** The report that is pointed at, in a list or on the map: the other one shows it, too. */
import { signal } from '@preact/signals';

import type { Report } from '../api/client';

type Lit = Pick<Report, 'id' | 'latitude' | 'longitude'>;

export const lit = signal<Lit | undefined>();

/** Listeners of what stands for a report. */
export const lights = (report: Lit) => ({
  onPointerEnter: () => (lit.value = report),
  onPointerLeave: () => (lit.value = undefined),
  onFocusIn: () => (lit.value = report),
  onFocusOut: () => (lit.value = undefined),
});
