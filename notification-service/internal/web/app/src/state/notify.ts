/** How the reader learns of the status of a report that they filed, and how that is switched on. */
import { must, notificationService, type Contact } from '../api/client';

const STATUS = 'report.status.updated';

/** The address that mails go to; null without one. */
export const readContact = async (): Promise<Contact | null> => (await must(notificationService.GET('/me/contact'))) || null;

/** Whether new statuses are mailed. */
export const isMailed = (contact: Contact | null) => contact?.state === 'active' && contact.email.includes(STATUS);

/**
 * Switches new statuses on for one way, beside what is on already. About an anonymous
 * report something is sent only if its reporter asks for that report.
 */
export async function switchOn(way: 'email' | 'push', report: { id: string; privacy_level: string }): Promise<void> {
  if (report.privacy_level === 'anonymous') {
    await must(notificationService.PUT('/me/mail-consents', { body: { report_id: report.id, mail: true } }));
  }
  const chosen = await must(notificationService.GET('/me/preferences'));
  const kinds = chosen[way] ?? [];
  if (!kinds.includes(STATUS)) await must(notificationService.PUT('/me/preferences', { body: { ...chosen, [way]: [...kinds, STATUS] } }));
}
