import './styles/index.css';

import { render } from 'preact';

import { App } from './app';
import { language, preferredLanguage, setLanguage } from './lang/i18n';
import { onChange, startLive } from './live/live';
import { preloadReports } from './screens/reports/reports';
import { keepCategories, loadCategories } from './state/categories';
import { config, loadConfig } from './state/config';
import { subscribeToFeed } from './state/feed';
import { draft } from './state/draft';
import { takeOver } from './state/handover';
import { followOwn } from './state/own';
import { intendedVote } from './state/report';
import { keepSession } from './state/renewal';
import { loadSession, recheckSession, session } from './state/session';
import { loadPage } from './start';
import { reloadPage } from './ui/reload';
import { route } from './ui/router';
import { sayFaultsAtFields } from './ui/validity';

async function start(): Promise<void> {
  const root = document.getElementById('app')!;
  preloadReports();
  sayFaultsAtFields();
  const others = [setLanguage(preferredLanguage()), loadCategories()].map((load) => load.catch(() => {})); // the page can do without
  await loadPage(() => Promise.all([loadConfig(), loadSession()]), root);
  await Promise.all(others);
  // The city's first language is known only now, for whoever has none of the page's.
  if (preferredLanguage() !== language.value) await setLanguage(preferredLanguage()).catch(() => {});
  if (location.search.includes('code=') || location.search.includes('error=')) {
    await (await import('./state/oidc')).finishSignIn();
    return;
  }
  if (session.value) goOn();
  render(<App />, root);

  onChange((what) => what === 'session' && void becomeAnother());
  // Someone else may have signed in while this page was in the back/forward cache.
  window.addEventListener('pageshow', ({ persisted }) => persisted && session.value && void recheckSession());
  subscribeToFeed();
  if (session.value) await followOwn();
  startLive();
  keepCategories(() => route.value.path.join('/'));
  keepSession();
  // Last: it fetches the page's files once more, to keep them.
  if (import.meta.env.PROD && 'serviceWorker' in navigator) navigator.serviceWorker.register('/sw.js').catch(() => {});
}

/** After a sign-in, opens what was begun before it. */
function goOn(): void {
  const begun = takeOver();
  if (begun.draft) draft.value = begun.draft;
  intendedVote.value = begun.vote;
}

/** In another tab somebody has signed in or out, or become a guest: what a guest-to-be has written here goes along. */
async function becomeAnother(): Promise<void> {
  if (!session.value && config.guests) await import('./guest/state').then(({ goAlong }) => goAlong()).catch(() => {});
  reloadPage();
}

void start();
