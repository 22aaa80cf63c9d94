import '../../styles/queue.css';

import { useEffect, useState } from 'preact/hooks';

import { number, t, tn } from '../../lang/queue';
import { debounce } from '../../live/batch';
import { Suspects } from '../../moderation/suspects';
import { HeldPhotos } from '../../photos/review';
import { config } from '../../state/config';
import { loadDesk, loadWaiting, waiting } from '../../state/desk';
import { watchFeed } from '../../state/feed';
import { filtersOf } from '../../state/filters';
import { isLimited, scope } from '../../state/scope';
import { usePoll } from '../../ui/poll';
import { Fault } from '../../ui/problem';
import { href, route } from '../../ui/router';
import { BulkMoves } from './bulk-moves';
import { Numbers } from './numbers';
import { TemplatesScreen } from './templates';
import { SELDOM_MS } from './undecided';
import { Workbench } from './workbench';

const sections = [
  { path: '', name: 'queue' },
  { path: 'numbers', name: 'numbers' },
  { path: 'photos', name: 'held.title' },
  { path: 'abuse', name: 'abuse.title' },
  { path: 'moves', name: 'work.acts' },
  { path: 'templates', name: 'settings' },
] as const;

/** After a comment the counts follow within this time. */
const COUNT_MS = 1_000;

/** How much waits in a section. */
function waitingIn(name: (typeof sections)[number]['name']): number {
  if (name === 'queue') return waiting.value?.new_comments ?? 0;
  if (name === 'held.title') return waiting.value?.held_photos ?? 0;
  if (name === 'abuse.title') return waiting.value?.abuse_reports ?? 0;
  return 0;
}

/** The desk of the officials, a tab for each part. */
export function QueueScreen({ path: [, path = ''] }: { path: string[] }) {
  const [error, setError] = useState<unknown>();
  // Only moderators decide on photos. They are there until it is known who may not.
  const own = sections.filter(({ path }) => path !== 'photos' || (config.photos && scope.value?.moderator !== false));
  const section = own.find((each) => each.path === path) ?? sections[0];
  const read = () => {
    setError(undefined);
    loadDesk().catch(setError);
  };
  useEffect(read, []);
  usePoll(loadWaiting, [path], SELDOM_MS);
  useEffect(() => {
    const soon = debounce(() => void loadWaiting().catch(() => {}), COUNT_MS);
    return watchFeed({
      onEvents: (events) =>
        events.some(({ type }) => ['report.commented', 'report.disputed', 'report.status.updated'].includes(type)) && soon(),
      onGap: soon,
    });
  }, []);
  return (
    <div class="workbench" data-open={section.name === 'queue' && route.value.query.has('report')}>
      <div class="title-row">
        <h1 tabIndex={-1}>{t(section.name)}</h1>
        <nav class="tabs" aria-label={t('work')}>
          {own.map(({ path, name }) => (
            <a key={path} href={href(path ? `queue/${path}` : 'queue')} aria-current={path === section.path ? 'page' : undefined}>
              {t(name)}
              {waitingIn(name) > 0 && (
                <span class="count" title={name === 'queue' ? tn('work.with-new-comments', waitingIn(name)) : undefined}>
                  {number(waitingIn(name))}
                  {name === 'queue' && <span class="hidden"> {t('work.new-comments')}</span>}
                </span>
              )}
            </a>
          ))}
        </nav>
      </div>
      {isLimited() && <Departments />}
      <Fault error={error} retry={read} />
      {section.name === 'queue' && <Workbench />}
      {section.name === 'numbers' && <Numbers filters={{ ...filtersOf(route.value.query), status: [] }} />}
      {section.name === 'settings' && <TemplatesScreen />}
      {section.name === 'work.acts' && <BulkMoves />}
      {section.name === 'held.title' && <HeldPhotos />}
      {section.name === 'abuse.title' && <Suspects />}
    </div>
  );
}

/** The departments whose reports the desk has, and what is wrong with their codes. */
function Departments() {
  const { departments = [], unknown = [] } = scope.value ?? {};
  return (
    <p class="quiet">
      {t('work.yours', { departments: departments.map(({ name }) => name).join(', ') || '–' })}
      {unknown.length > 0 && <strong> {t('work.yours.unknown', { codes: unknown.join(', ') })}</strong>}
    </p>
  );
}
