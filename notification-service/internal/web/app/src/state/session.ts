/** Who is signed in. The token itself is in a cookie that no script can read. */
import { signal } from '@preact/signals';

import { must, notificationService, reportService, whenUnauthenticated } from '../api/client';
import type { components } from '../api/notification.gen';

export type Session = components['schemas']['Session'];
export type Role = Session['role'];

/** Who is signed in, or undefined. Set before anything is shown. */
export const session = signal<Session | undefined>();

/** Whether a session ended by itself, so that the page can say so. */
export const sessionEnded = signal(false);

whenUnauthenticated(endSession);

function endSession(): void {
  if (!session.value) return;
  session.value = undefined;
  sessionEnded.value = true;
}

export async function loadSession(): Promise<void> {
  try {
    session.value = (await must(notificationService.GET('/session'))) || undefined;
  } catch {
    session.value = undefined;
  }
}

/** Reports whether the session still holds; an unreachable server says nothing against it. */
export async function recheckSession(): Promise<boolean> {
  try {
    if (!(await must(notificationService.GET('/session')))) endSession();
  } catch {
    // A 401 has ended the session already.
  }
  return session.value !== undefined;
}

/** Puts the token into the session cookie. */
export async function openSession(token: string): Promise<void> {
  await must(notificationService.POST('/session', { headers: { Authorization: `Bearer ${token}` } }));
}

/** Signs in as anyone, where the development issuer is open. */
export async function signInAs(name: string, role: Role): Promise<void> {
  // The same name is the same person, today and tomorrow.
  const sub = `${role}-${name.trim().toLowerCase().replaceAll(/\s+/g, '-')}`;
  const token = await must(reportService.POST('/dev/token', { body: { name: name.trim(), role, sub } }));
  await openSession(token.access_token);
}

export async function closeSession(): Promise<void> {
  await must(notificationService.DELETE('/session'));
}
