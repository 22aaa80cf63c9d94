/**
 * The session is renewed before it ends, where the city's identity provider
 * still knows the user: nobody notices, and nothing that is being written is
 * lost. If it does not, the session ends at its time, with words.
 *
 * One tab renews it for all: those that come after it find a session that
 * ends later.
 */
import { effect } from '@preact/signals';

import { reloadPage } from '../ui/reload';
import { config } from './config';
import { openSession, readSession, session, type Session } from './session';

const LOCK = 'cityconnect.renewal';
/** So long before the end, or at half of what is left, if that is later. */
const AHEAD_MS = 60_000;
/** A provider that did not answer is asked again, until the session ends. */
const RETRY_MS = 20_000;
/** The longest time that a browser's timer can wait. */
const LONGEST_MS = 2 ** 31 - 1;

export function keepSession(): void {
  if (config.auth.mode !== 'oidc') return;
  effect(() => {
    const now = session.value;
    if (!now || now.guest) return; // the city itself renews a guest's
    const left = new Date(now.expires_at).getTime() - Date.now();
    const timer = setTimeout(() => void renew(now), Math.min(Math.max(left - AHEAD_MS, left / 2, 0), LONGEST_MS));
    return () => clearTimeout(timer);
  });
}

async function renew(before: Session): Promise<void> {
  const work = async () => {
    const now = await readSession(); // another tab may have renewed it
    if (now && now.expires_at > before.expires_at) return now;
    const { renewToken } = await import('./oidc');
    return openSession(await renewToken());
  };
  try {
    const locks = navigator.locks as LockManager | undefined;
    const renewed = await (locks ? locks.request(LOCK, work) : work());
    if (session.value !== before) return; // signed out during the renewal
    // The provider may know another user by now.
    if (renewed.sub === before.sub) session.value = renewed;
    else reloadPage();
  } catch {
    const left = new Date(before.expires_at).getTime() - Date.now();
    if (left > RETRY_MS) setTimeout(() => session.value === before && void renew(before), RETRY_MS);
  }
}
