import { useEffect, useState } from 'preact/hooks';

import { t } from '../../lang/queue';
import { Suspects } from '../../moderation/suspects';
import { HeldPhotos } from '../../photos/held';
import { config } from '../../state/config';
import { loadDesk } from '../../state/desk';
import { Fault } from '../../ui/problem';
import { href, route } from '../../ui/router';
import { BulkMoves } from './bulk-moves';
import { filtersOf } from './filters';
import { Numbers } from './numbers';
import { TemplatesScreen } from './templates';
import { Workbench } from './workbench';

const sections = [
  { path: '', name: 'queue' },
  { path: 'numbers', name: 'numbers' },
  { path: 'templates', name: 'templates' },
  { path: 'moves', name: 'moves' },
  { path: 'photos', name: 'held.title' },
  { path: 'abuse', name: 'abuse.title' },
] as const;

/** What the officials work with, a tab for each part. */
export function QueueScreen({ path: [, path = ''] }: { path: string[] }) {
  const [error, setError] = useState<unknown>();
  const section = sections.find((each) => each.path === path) ?? sections[0];
  const read = () => {
    setError(undefined);
    loadDesk().catch(setError);
  };
  useEffect(read, []);
  return (
    <div class="workbench" data-open={section.name === 'queue' && route.value.query.has('report')}>
      <div class="title-row">
        <h1 tabIndex={-1}>{t(section.name)}</h1>
        <nav class="tabs" aria-label={t('work')}>
          {sections
            .filter(({ path }) => path !== 'photos' || config.photos)
            .map(({ path, name }) => (
              <a key={path} href={href(path ? `queue/${path}` : 'queue')} aria-current={path === section.path ? 'page' : undefined}>
                {t(name)}
              </a>
            ))}
        </nav>
      </div>
      <Fault error={error} retry={read} />
      {section.name === 'queue' && <Workbench />}
      {section.name === 'numbers' && <Numbers filters={{ ...filtersOf(route.value.query), status: [] }} />}
      {section.name === 'templates' && <TemplatesScreen />}
      {section.name === 'moves' && <BulkMoves />}
      {section.name === 'held.title' && <HeldPhotos />}
      {section.name === 'abuse.title' && <Suspects />}
    </div>
  );
}
