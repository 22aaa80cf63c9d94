/** Reports without an account: what the city lets guests do. The rest is in guest/, which comes when it is asked for. */
import { signal } from '@preact/signals';

import { must, reportService, type GuestRules } from '../api/client';

/** Absent until they are known. */
export const guestRules = signal<GuestRules | undefined>();

export async function loadGuestRules(): Promise<void> {
  guestRules.value = await must(reportService.GET('/guests'));
}
