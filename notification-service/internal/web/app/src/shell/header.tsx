import { useState } from 'preact/hooks';

import { t, type Word } from '../lang/i18n';
import { isOfficial, session } from '../state/session';
import { Icon, type IconName } from '../ui/icons';
import { lazily } from '../ui/lazily';
import { href, route } from '../ui/router';
import { Bell } from './bell';
import { Brand } from './brand';
import { ConnectionState } from './connection';

const Menu = lazily(async () => (await import('./menu')).Menu, true);

interface Place {
  path: string;
  name: Word;
  icon: IconName;
}

function places(): Place[] {
  const all: Place[] = [{ path: '', name: 'reports', icon: 'list' }];
  if (session.value?.role === 'resident') all.push({ path: 'mine', name: 'mine', icon: 'person' });
  if (isOfficial()) all.push({ path: 'queue', name: 'queue', icon: 'inbox' });
  const readsConsole = session.value?.role === 'operator' || session.value?.role === 'auditor';
  if (readsConsole) all.push({ path: 'ops', name: 'console', icon: 'gauge' });
  else all.push({ path: 'new', name: 'new', icon: 'plus' });
  return all;
}

export function Header() {
  const [menu, setMenu] = useState(false);
  const here = route.value.path[0] ?? '';
  const who = session.value ? session.value.name || t(session.value.guest ? 'guest' : `role.${session.value.role}`) : t('sign-in');
  return (
    <header class="top">
      <a class="brand" href={href('')}>
        <Brand />
      </a>
      <nav aria-label={t('nav')} data-role={session.value?.role}>
        {places().map(({ path, name, icon }) => (
          <a key={path} href={href(path)} aria-current={path === here ? 'page' : undefined} data-place={path}>
            <Icon name={icon} />
            <span>{t(name)}</span>
          </a>
        ))}
      </nav>
      <div class="tools">
        <ConnectionState />
        {session.value && <Bell />}
        <button type="button" class="plain" aria-haspopup="dialog" aria-label={`${who}: ${t('menu')}`} onClick={() => setMenu(true)}>
          <Icon name="person" />
          <span class="who">{who}</span>
        </button>
      </div>
      {menu && <Menu onClose={() => setMenu(false)} />}
    </header>
  );
}
