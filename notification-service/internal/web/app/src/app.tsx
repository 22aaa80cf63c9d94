import type { ComponentType } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import { t, type Word } from './lang/i18n';
import { CreateScreen } from './screens/create/create';
import { MineScreen } from './screens/mine';
import { NoPage } from './screens/no-page';
import { ReportScreen } from './screens/report/report';
import { ReportsScreen } from './screens/reports/reports';
import { Footer } from './shell/footer';
import { Header } from './shell/header';
import { Toasts } from './shell/toasts';
import { cityName } from './state/config';
import { session, sessionEnded, type Role } from './state/session';
import { Boundary } from './ui/boundary';
import { lazily } from './ui/lazily';
import { here, href, returnedTo, route, Router } from './ui/router';
import { restoreReadingPosition } from './ui/scroll';
import { subject } from './ui/title';

type View = ComponentType<{ path: string[] }>;

interface Screen {
  title: Word;
  view: View;
  /** The roles that may see it: anyone if absent, anyone who signed in if empty. */
  roles?: Role[];
}

const SignInScreen = lazily(async () => (await import('./screens/sign-in')).SignInScreen);

/** By the first part of the address; ui/router.tsx and web.go have the same parts. */
const screens: Record<string, Screen> = {
  '': { title: 'reports', view: ReportsScreen },
  reports: { title: 'report', view: ReportScreen },
  new: { title: 'new', view: CreateScreen },
  filed: { title: 'new.filed', view: lazily(async () => (await import('./screens/receipt/receipt')).FiledScreen), roles: [] },
  mine: { title: 'mine', view: MineScreen, roles: [] },
  settings: {
    title: 'settings',
    view: lazily(async () => (await import('./screens/settings/settings')).SettingsScreen),
    roles: [],
  },
  queue: {
    title: 'queue',
    view: lazily(async () => (await import('./screens/queue/queue')).QueueScreen),
    roles: ['official', 'moderator'],
  },
  ops: { title: 'console', view: lazily(async () => (await import('./screens/ops/console')).Console), roles: ['operator', 'auditor'] },
  j: { title: 'report', view: lazily(async () => (await import('./screens/job')).JobScreen) },
  'sign-in': { title: 'sign-in', view: SignInScreen },
};

const nowhere: Screen = { title: 'no-page', view: () => <NoPage title="no-page" text="no-page.text" /> };

const TakeOver = lazily(async () => (await import('./guest/take-over')).TakeOver, true);

export function App() {
  return (
    <Router>
      <Page />
    </Router>
  );
}

function Page() {
  const { path } = route.value;
  const [first = ''] = path;
  const screen = (Object.hasOwn(screens, first) && screens[first]) || nowhere;
  useAnnouncedPlace(path.join('/'), subject.value ?? t(screen.title));
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        {t('skip')}
      </a>
      <Header />
      {session.value?.adoptable && <TakeOver />}
      {sessionEnded.value && (
        <p class="banner" role="status">
          {t(sessionEnded.value)} <a href={signInHref()}>{t('sign-in')}</a>
        </p>
      )}
      <main id="main" tabIndex={-1}>
        <RequireRole screen={screen} path={path} />
      </main>
      <Footer />
      <Toasts />
    </>
  );
}

function RequireRole({ screen: { view: View, roles }, path }: { screen: Screen; path: string[] }) {
  const role = session.value?.role;
  if (roles && !role) return <SignInScreen path={path} />;
  if (roles?.length && role && !roles.includes(role)) return <NoPage title="no-role" text="problem.forbidden" />;
  const place = path.slice(0, 2).join('/');
  return (
    <Boundary key={place}>
      <View path={path} key={place} />
    </Boundary>
  );
}

/** Where to sign in, and come back from. */
function signInHref(): string {
  return href('sign-in', { to: here() });
}

/** Without a step in the history. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

/** Tells where the reader is: in the title, and to a screen reader by the focus. */
function useAnnouncedPlace(place: string, title: string): void {
  const first = useRef(true);
  useEffect(() => {
    document.title = `${title} · ${cityName()}`;
  }, [title]);
  useEffect(() => {
    if (!first.current) {
      const position = returnedTo.peek();
      if (!position) window.scrollTo(0, 0);
      if (!position || !restoreReadingPosition(position)) document.querySelector<HTMLElement>('main h1')?.focus({ preventScroll: true });
    }
    first.current = false;
  }, [place]);
}
