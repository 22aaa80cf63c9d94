/** The notifications of the signed-in user, kept current. */
import { loadNotifications, subscribeToNotifications } from './notifications';
import { sendKept } from '../photos/uploads';
import { subscribeToStages } from '../photos/stages';
import { config } from './config';
import { shareFollowed } from './follows';
import { loadGuestRules } from './guests';
import { session } from './session';

/** Resolves once it is known where the user's own stream begins: with the list, or without it now. */
export async function followOwn(): Promise<void> {
  shareFollowed();
  subscribeToNotifications();
  subscribeToStages();
  void sendKept();
  if (session.value?.guest) {
    loadGuestRules().catch(() => {}); // until then guests neither vote nor comment
    import('../lang/guest').catch(() => {}); // the words for what a guest is refused
  }
  if (config.push && 'Notification' in window && Notification.permission === 'granted')
    import('./device').then(({ checkDevice }) => checkDevice()).catch(() => {});
  await loadNotifications().catch(() => {});
}
