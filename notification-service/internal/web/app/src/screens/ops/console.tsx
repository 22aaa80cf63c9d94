import type { ComponentType } from 'preact';

import { t, type Word } from '../../lang/i18n';
import { href } from '../../ui/router';
import { Outbox } from './outbox';

interface Section {
  path: string;
  name: Word;
  view: ComponentType<{ path: string[] }>;
}

const sections: [Section, ...Section[]] = [{ path: 'outbox', name: 'outbox', view: Outbox }];

/** What operators work with, a tab for each part of the pair. */
export function Console({ path }: { path: string[] }) {
  const section = sections.find((each) => each.path === path[1]) ?? sections[0];
  return (
    <>
      <h1 tabIndex={-1}>{t('console')}</h1>
      <nav class="tabs" aria-label={t('console')}>
        {sections.map(({ path, name }) => (
          <a key={path} href={href(`ops/${path}`)} aria-current={path === section.path ? 'page' : undefined}>
            {t(name)}
          </a>
        ))}
      </nav>
      <section.view path={path.slice(2)} />
    </>
  );
}
