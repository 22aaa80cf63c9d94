import type { ComponentType } from 'preact';

import { t, type Word } from '../../lang/i18n';
import { href } from '../../ui/router';
import { Audit } from './audit';
import { DeadLetters } from './dead-letters';
import { Outbox } from './outbox';
import { Queues } from './queues';
import { Replays } from './replays';
import { Webhooks } from './webhooks/webhooks';

interface Section {
  path: string;
  name: Word;
  view: ComponentType<{ path: string[] }>;
}

const sections: [Section, ...Section[]] = [
  { path: 'queues', name: 'queues', view: Queues },
  { path: 'outbox', name: 'outbox', view: Outbox },
  { path: 'dead-letters', name: 'dead', view: DeadLetters },
  { path: 'replays', name: 'replays', view: Replays },
  { path: 'webhooks', name: 'webhooks', view: Webhooks },
  { path: 'audit', name: 'audit', view: Audit },
];

/** The operators' console, a tab for each part. */
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
      <section.view path={path.slice(2)} key={section.path} />
    </>
  );
}
