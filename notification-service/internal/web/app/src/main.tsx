import './styles/index.css';

import { render } from 'preact';

import { App } from './app';
import { preferredLanguage, setLanguage } from './lang/i18n';
import { onChange, startLive } from './live/live';
import { preloadReports } from './screens/reports/reports';
import { loadCategories } from './state/categories';
import { loadConfig } from './state/config';
import { subscribeToFeed } from './state/feed';
import { announceFollowed } from './state/followed';
import { subscribeToNotifications, loadNotifications } from './state/notifications';
import { loadSession, recheckSession, session } from './state/session';
import { reloadPage } from './ui/reload';

async function start(): Promise<void> {
  preloadReports();
  await Promise.all([loadConfig(), loadSession(), setLanguage(preferredLanguage()), loadCategories().catch(() => {})]);
  if (location.search.includes('code=') || location.search.includes('error=')) {
    await (await import('./state/oidc')).finishSignIn();
    return;
  }
  render(<App />, document.getElementById('app')!);

  onChange((what) => what === 'session' && reloadPage());
  // Someone else may have signed in while this page was in the back/forward cache.
  window.addEventListener('pageshow', ({ persisted }) => persisted && session.value && void recheckSession());
  subscribeToFeed();
  announceFollowed();
  if (session.value) {
    subscribeToNotifications();
    // The list says where the stream begins. Without it, it begins now.
    await loadNotifications().catch(() => {});
  }
  startLive();
}

void start();
