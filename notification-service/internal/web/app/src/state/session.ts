/** The signed-in user. The token itself is in a cookie that no script can read. */
import { signal } from '@preact/signals';

import { Failure, must, notificationService, reportService, whenUnauthenticated } from '../api/client';
import type { components } from '../api/notification.gen';
import { disown, forgetAll as forgetUploads } from '../photos/store';
import { reloadPage } from '../ui/reload';
import { config } from './config';
import { guestRules } from './guests';
import { closeUserData, openUserData, removeUserData } from './storage';

export type Session = components['schemas']['Session'];
export type Role = Session['role'];

/** The signed-in user, or undefined. Set before anything is shown. */
export const session = signal<Session | undefined>();

/** The words for it, if the session ended by itself. */
export const sessionEnded = signal<'session.ended' | 'guest.ended' | 'guest.adopted' | undefined>();

/** Whether the user works on reports: moderators are officials of the whole city. */
export const isOfficial = () => session.value?.role === 'official' || session.value?.role === 'moderator';

/** Whether the user files as a guest: with such a session, or without one where the city takes guests. */
export const filesAsGuest = () => (session.value ? session.value.guest : config.guests && guestRules.value?.open !== false) === true;

/** Whether the user votes, and comments: whoever is signed in, and guests where the city lets them. */
export const may = (what: 'votes' | 'comments') =>
  session.value !== undefined && (!session.value.guest || guestRules.value?.[what] === true);

whenUnauthenticated(endSession);

/**
 * Shows the page as nobody's, after the session has ended by itself. What the user was writing is kept
 * for that user; guests cannot return, and go on writing as nobody. One whose reports an account has
 * taken over is answered so from the beginning.
 */
export function endSession(kind?: string): void {
  const { sub, guest } = session.value ?? {};
  if (kind === 'guest-adopted') sessionEnded.value = 'guest.adopted';
  else if (sub) sessionEnded.value = guest ? 'guest.ended' : 'session.ended';
  if (!sub) return;
  if (guest) void disown(sub);
  closeUserData(guest);
  session.value = undefined;
}

/** Asks who is signed in, in any tab. */
export const readSession = async () => (await must(notificationService.GET('/session'))) as Session | undefined;

/** Throws a Failure if the server does not say who is signed in. */
export async function loadSession(): Promise<void> {
  try {
    const found = await readSession();
    if (found) await openUserData(found.sub);
    session.value = found || undefined;
  } catch (error) {
    // A cookie that is no longer good does not make a session.
    if (!(error instanceof Failure) || error.problem?.status !== 401) throw error;
    session.value = undefined;
  }
}

/**
 * Asks the server whether the page's user is still the one who is signed in:
 * another one may have signed in since, in another tab or while this page was
 * in the back/forward cache. Throws a Failure if there is no answer.
 */
export async function confirmUser(): Promise<boolean> {
  const now = await readSession();
  if (!now) endSession();
  else if (now.sub !== session.value?.sub) reloadPage();
  return now !== undefined && now.sub === session.value?.sub;
}

/** Reports whether the session still holds; an unreachable server says nothing against it. */
export async function recheckSession(): Promise<boolean> {
  try {
    return await confirmUser();
  } catch {
    // A 401 has ended the session already.
    return session.value !== undefined;
  }
}

/** Puts the token into the session cookie, and returns whom it speaks for. */
export async function openSession(token: string): Promise<Session> {
  return must(notificationService.POST('/session', { headers: { Authorization: `Bearer ${token}` } }));
}

/** Signs in as anyone, where the development issuer is open. */
export async function signInAs(name: string, role: Role): Promise<void> {
  // The same name is the same person, today and tomorrow.
  const sub = `${role}-${name.trim().toLowerCase().replaceAll(/\s+/g, '-')}`;
  const token = await must(reportService.POST('/dev/token', { body: { name: name.trim(), role, sub } }));
  await openSession(token.access_token);
}

/** Signs out, and removes what the page keeps of the user. */
export async function closeSession(): Promise<void> {
  await must(notificationService.DELETE('/session'));
  removeUserData();
  void forgetUploads();
}
