import '../../styles/operators.css';

import type { ComponentType } from 'preact';

import { number, t, type Word } from '../../lang/console';
import { config } from '../../state/config';
import { NoPage } from '../no-page';
import { Boundary } from '../../ui/boundary';
import { href, route } from '../../ui/router';
import { clockTime } from '../../ui/time';
import { useSubject } from '../../ui/title';
import { readsOnly } from './acts';
import { Areas } from './areas/areas';
import { Assets } from './assets';
import { Audit } from './audit';
import { BackOffice } from './back-office';
import { CityCalendar } from './calendar/calendar';
import { Categories } from './categories/categories';
import { City } from './city';
import { DeadLetters } from './dead-letters';
import { Departments } from './departments';
import { Email } from './email/email';
import { Guests } from './guests';
import { health, partOf, useHealth, type Service } from './health';
import { causesOf, lightsOf } from './lights';
import { MessageStory } from './message/message';
import { Connections } from './connections';
import { Open311 } from './open311';
import { Outbox } from './outbox';
import { Overview } from './overview';
import { People } from './people';
import { Queues } from './queues';
import { Reconciliation } from './reconciliation/reconciliation';
import { Replays } from './replays';
import { Schedules } from './schedules/schedules';
import { SearchField, SearchResults } from './search';
import { Webhooks } from './webhooks/webhooks';

interface Section {
  path: string;
  name: Word;
  view: ComponentType<{ path: string[] }>;
  /** Whether it is among the city's settings, which share a tab: nobody looks there in an incident. */
  setting?: true;
  /** Whether it is reached without a tab. */
  hidden?: true;
  /** Whether the city has it; absent is yes. */
  shown?(): boolean;
  /** The number of things that wait for an operator there. */
  waiting?(): Count | undefined;
}

/** A count, and when it was read, if that is no longer now. */
interface Count {
  count: number;
  asOf: Date | undefined;
}

const sections: Section[] = [
  { path: '', name: 'overview', view: Overview },
  { path: 'queues', name: 'queues', view: Queues, waiting: () => countOf('notifications', 'consumers', 'unconsumed') },
  { path: 'outbox', name: 'outbox', view: Outbox, waiting: () => countOf('reports', 'outbox', 'failed') },
  { path: 'dead-letters', name: 'dead', view: DeadLetters, waiting: () => countOf('notifications', 'dead_letters', 'open') },
  { path: 'replays', name: 'replays', view: Replays },
  { path: 'webhooks', name: 'webhooks', view: Webhooks, waiting: () => countOf('notifications', 'webhooks', 'disabled') },
  { path: 'back-office', name: 'back-office', view: BackOffice, waiting: () => countOf('notifications', 'back_office', 'differing') },
  { path: 'email', name: 'email', view: Email, shown: () => config.mails === true },
  { path: 'schedules', name: 'schedules', view: Schedules, waiting: failedJobs },
  { path: 'audit', name: 'audit', view: Audit },
  { path: 'search', name: 'search.button', view: SearchResults, hidden: true },
  { path: 'messages', name: 'story', view: MessageStory, hidden: true },
  { path: 'reconciliation', name: 'reconciliation', view: Reconciliation, hidden: true },
  { path: 'categories', name: 'categories', view: Categories, setting: true },
  { path: 'areas', name: 'areas', view: Areas, setting: true },
  { path: 'assets', name: 'assets', view: Assets, setting: true },
  { path: 'departments', name: 'departments', view: Departments, setting: true },
  { path: 'calendar', name: 'calendar', view: CityCalendar, setting: true },
  { path: 'connections', name: 'connections', view: Connections, setting: true },
  { path: 'open311', name: 'open311', view: Open311, setting: true },
  { path: 'guests', name: 'guests', view: Guests, setting: true, shown: () => config.guests === true },
  { path: 'people', name: 'people', view: People, setting: true },
  { path: 'city', name: 'city', view: City, setting: true },
];

/** The operators' console, a tab for each part. */
export function Console({ path }: { path: string[] }) {
  useHealth();
  const problems = causesOf(lightsOf(health.value)).length;
  useSubject(problems > 0 ? `(${number(problems)}) ${t('console')}` : undefined);
  const shown = sections.filter((each) => each.shown?.() ?? true);
  const section = shown.find((each) => each.path === (path[1] ?? ''));
  const settings = shown.filter(({ setting }) => setting);
  if (!section) return <NoPage title="no-page" text="no-page.text" />;
  return (
    <div class="console">
      <div class="bar spread">
        <h1 tabIndex={-1}>{t('console')}</h1>
        <SearchField key={route.value.query.get('q') ?? ''} />
      </div>
      {readsOnly() && <p class="note">{t('console.reads-only')}</p>}
      <nav class="tabs" aria-label={t('console')}>
        {shown
          .filter(({ setting, hidden }) => !setting && !hidden)
          .map((each) => (
            <Tab key={each.path} section={each} current={each === section} />
          ))}
        <a href={href(`ops/${settings[0]?.path}`)} aria-current={section.setting ? 'page' : undefined}>
          {t('settings')}
        </a>
      </nav>
      {section.setting && (
        <>
          <nav class="tabs inner" aria-label={t('settings')}>
            {settings.map((each) => (
              <Tab key={each.path} section={each} current={each === section} />
            ))}
          </nav>
          <h2>{t(section.name)}</h2>
        </>
      )}
      <Boundary key={section.path}>
        <section.view path={path.slice(2)} key={section.path} />
      </Boundary>
    </div>
  );
}

function Tab({ section: { path, name, waiting }, current }: { section: Section; current: boolean }) {
  const { count = 0, asOf } = waiting?.() ?? {};
  return (
    <a href={href(path ? `ops/${path}` : 'ops')} aria-current={current ? 'page' : undefined}>
      {t(name)}
      {count > 0 && (
        <span class="count" title={asOf && t('count.as-of', { time: clockTime(asOf) })}>
          {number(count)}
        </span>
      )}
    </a>
  );
}

/** The last count of each part for each cause: a request that fails takes none away. */
const counts = new Map<string, Count>();

/** How many there are for a cause, as it was last read. */
function countOf(service: Service, name: Parameters<typeof partOf>[1], cause: string): Count | undefined {
  const key = `${service} ${name} ${cause}`;
  const part = partOf(service, name);
  const before = counts.get(key);
  if (!part) return before;
  const readAt = part.read_at ? new Date(part.read_at) : undefined;
  if (part.state === 'unknown' || health.value[service].missing) return before && { ...before, asOf: readAt ?? before.asOf };
  const now = { count: part.cause === cause ? part.count : 0, asOf: undefined };
  counts.set(key, now);
  return now;
}

function failedJobs(): Count {
  const all = [countOf('reports', 'jobs', 'failed'), countOf('notifications', 'jobs', 'failed')].filter((each) => each !== undefined);
  return { count: all.reduce((sum, { count }) => sum + count, 0), asOf: all.find(({ asOf }) => asOf)?.asOf };
}
