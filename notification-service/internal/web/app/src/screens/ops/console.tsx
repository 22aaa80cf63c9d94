import type { ComponentType } from 'preact';

import { number, t, type Word } from '../../lang/console';
import { config } from '../../state/config';
import { Fault } from '../../ui/problem';
import { href } from '../../ui/router';
import { Audit } from './audit';
import { CityCalendar } from './calendar/calendar';
import { DeadLetters } from './dead-letters';
import { Departments } from './departments';
import { Email } from './email/email';
import { Outbox } from './outbox';
import { Overview } from './overview';
import { Queues } from './queues';
import { useReadings, type Reading } from './readings';
import { Replays } from './replays';
import { Schedules } from './schedules/schedules';
import { Webhooks } from './webhooks/webhooks';

interface SectionProps {
  path: string[];
  reading: Reading;
  /** Reads now. */
  refresh(): void;
}

interface Section {
  path: string;
  name: Word;
  view: ComponentType<SectionProps>;
  /** Whether the city has it; absent is yes. */
  shown?(): boolean;
  /** What waits for an operator there. */
  waiting?(reading: Reading): number | undefined;
}

const sections: [Section, ...Section[]] = [
  { path: '', name: 'overview', view: Overview },
  { path: 'queues', name: 'queues', view: Queues, waiting: ({ workers }) => workers?.findings.length },
  { path: 'outbox', name: 'outbox', view: Outbox, waiting: ({ outbox }) => outbox?.failed },
  { path: 'dead-letters', name: 'dead', view: DeadLetters, waiting: ({ open }) => open },
  { path: 'replays', name: 'replays', view: Replays },
  { path: 'webhooks', name: 'webhooks', view: Webhooks },
  { path: 'email', name: 'email', view: Email, shown: () => config.mails === true },
  { path: 'schedules', name: 'schedules', view: Schedules },
  { path: 'departments', name: 'departments', view: Departments },
  { path: 'calendar', name: 'calendar', view: CityCalendar },
  { path: 'audit', name: 'audit', view: Audit },
];

/** The operators' console, a tab for each part. */
export function Console({ path }: { path: string[] }) {
  const shown = sections.filter((each) => each.shown?.() ?? true);
  const section = shown.find((each) => each.path === (path[1] ?? '')) ?? sections[0];
  const { value: reading, failures, error, refresh } = useReadings();
  return (
    <>
      <h1 tabIndex={-1}>{t('console')}</h1>
      <nav class="tabs" aria-label={t('console')}>
        {shown.map(({ path, name, waiting }) => {
          const count = (reading && waiting?.(reading)) ?? 0;
          return (
            <a key={path} href={href(path ? `ops/${path}` : 'ops')} aria-current={path === section.path ? 'page' : undefined}>
              {t(name)}
              {count > 0 && <span class="count">{number(count)}</span>}
            </a>
          );
        })}
      </nav>
      <Fault error={error ?? failures[0]} retry={refresh} />
      {reading ? (
        <section.view path={path.slice(2)} reading={reading} refresh={refresh} key={section.path} />
      ) : (
        <p class="empty">{t('loading')}</p>
      )}
    </>
  );
}
