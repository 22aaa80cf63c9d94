import { must, notificationService, reportService } from '../../api/client';
import { t } from '../../lang/console';
import { session } from '../../state/session';
import { act } from '../../ui/cause';
import { Fault } from '../../ui/problem';
import { usePoll } from '../../ui/poll';
import { href } from '../../ui/router';
import { Time } from '../../ui/time';
import { Waiting } from './waiting';

interface Entry {
  key: string;
  at: string;
  actor: string;
  action: string;
  /** What it was about: names and values. */
  about: [name: string, value: string][];
  href?: string;
}

/** The members of an audit entry's detail, nested ones as name.name. */
export function parts(detail: unknown, prefix = ''): [name: string, value: string][] {
  if (typeof detail !== 'object' || detail === null) return [];
  return Object.entries(detail).flatMap(([name, value]: [string, unknown]) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? parts(value, `${prefix}${name}.`)
      : [[prefix + name, typeof value === 'string' ? value : JSON.stringify(value)] as [string, string]],
  );
}

/** What operators did in both services, newest first. */
async function read(): Promise<Entry[]> {
  const query = { params: { query: { limit: 100 } } };
  const [dead, outbox, schedules] = await Promise.all([
    must(notificationService.GET('/admin/dlq/audit', query)),
    must(reportService.GET('/admin/outbox/audit', query)),
    must(reportService.GET('/admin/reports/schedules/audit', query)),
  ]);
  const entries: Entry[] = [
    ...dead.items.map((item) => ({
      key: `d${item.id}`,
      at: item.at,
      actor: item.actor,
      action: act(item.action),
      about: parts({ dead_letter: item.dead_letter_id, queue: item.queue, ...item.detail }),
      ...(item.dead_letter_id && { href: href(`ops/dead-letters/${item.dead_letter_id}`) }),
      ...endpointOf(item.detail),
    })),
    ...outbox.acts.map((entry) => ({
      key: `o${entry.message_id}${entry.at}`,
      at: entry.at,
      actor: entry.actor,
      action: act(`outbox ${entry.action}`),
      about: parts({ message: entry.message_id, routing_key: entry.routing_key, reason: entry.reason }),
    })),
    ...schedules.acts.map((entry) => ({
      key: `s${entry.schedule}${entry.at}`,
      at: entry.at,
      actor: entry.actor,
      action: act(entry.action),
      about: parts({ schedule: entry.schedule, period: entry.period, reason: entry.reason }),
    })),
  ];
  return entries.toSorted((a, b) => b.at.localeCompare(a.at));
}

/** The address of the webhook that an entry is about. */
function endpointOf(detail: { endpoint?: unknown }): { href?: string } {
  return typeof detail.endpoint === 'string' ? { href: href(`ops/webhooks/${detail.endpoint}`) } : {};
}

export function Audit() {
  const audit = usePoll(read);
  return (
    <div class="stack">
      {audit.value ? <Fault error={audit.error} retry={audit.refresh} /> : <Waiting error={audit.error} retry={audit.refresh} />}
      {audit.value?.length === 0 && <p class="empty">{t('audit.none')}</p>}
      <ul class="rows">
        {audit.value?.map((entry) => (
          <li key={entry.key}>
            <div>
              {entry.href ? <a href={entry.href}>{entry.action}</a> : <strong>{entry.action}</strong>}
              <p class="meta">
                <span>{t('audit.by', { actor: entry.actor === session.value?.sub ? t('audit.you') : entry.actor })}</span>
                <Time at={entry.at} full seconds />
              </p>
              <p class="meta">
                {entry.about.map(([name, value]) => (
                  <span key={name}>
                    {name} <code>{value}</code>
                  </span>
                ))}
              </p>
            </div>
          </li>
        ))}
      </ul>
    </div>
  );
}
