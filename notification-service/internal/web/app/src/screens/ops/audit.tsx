import { must, notificationService, reportService } from '../../api/client';
import { isWord, t } from '../../lang/console';
import { session } from '../../state/session';
import { act } from '../../ui/cause';
import { usePoll } from '../../ui/poll';
import { href } from '../../ui/router';
import { Time, weekdayName } from '../../ui/time';
import { Rows } from './rows';

interface Entry {
  key: string;
  at: string;
  actor: string;
  name?: string | undefined;
  action: string;
  /** The subject of an act: names and values. */
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

/** The acts of operators in both services, newest first. */
async function read(): Promise<Entry[]> {
  const query = { params: { query: { limit: 100 } } };
  const [dead, outbox, schedules, settings] = await Promise.all([
    must(notificationService.GET('/admin/dlq/audit', query)),
    must(reportService.GET('/admin/outbox/audit', query)),
    must(reportService.GET('/admin/reports/schedules/audit', query)),
    must(reportService.GET('/admin/reports/settings/audit', query)),
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
    ...settings.acts.map((entry) => ({
      key: `c${entry.setting}${entry.at}`,
      at: entry.at,
      actor: entry.actor,
      name: entry.actor_name,
      action: act(`settings ${entry.setting}`),
      about: changesOf(entry.detail),
      // Firms are edited at the desk.
      ...(entry.setting !== 'firms' && { href: href(`ops/${entry.setting}`) }),
    })),
  ];
  return entries.toSorted((a, b) => b.at.localeCompare(a.at));
}

/** The address of the webhook that an entry is about. */
function endpointOf(detail: { endpoint?: unknown }): { href?: string } {
  return typeof detail.endpoint === 'string' ? { href: href(`ops/webhooks/${detail.endpoint}`) } : {};
}

/** The changes of an operator to a setting, in the reader's words. */
export function changesOf(detail: Record<string, unknown>): [name: string, value: string][] {
  return Object.entries(detail).flatMap(([name, value]) => {
    if (name === 'open') return [[t(value ? 'guests.open' : 'guests.closed'), '']];
    if (value === 0 || value === false) return [];
    const key: string = `audit.${name}`;
    const word = isWord(key) ? t(key) : name;
    if (name === 'weekdays' && Array.isArray(value)) return [[word, value.map((day: number) => weekdayName((day + 6) % 7)).join(', ')]];
    if (value === true) return [[word, '']];
    return [[word, Array.isArray(value) ? value.join(', ') : String(value)]];
  });
}

/** By whom: the reader, a name, or else an id. */
export function actorName(actor: string, name?: string): string {
  return t('audit.by', { actor: actor === session.value?.sub ? t('audit.you') : name || actor });
}

export function Audit() {
  const audit = usePoll(async () => ({ items: await read() }));
  return (
    <div class="stack">
      <Rows found={audit} none={t('audit.none')}>
        {(entry) => (
          <li key={entry.key}>
            <div>
              {entry.href ? <a href={entry.href}>{entry.action}</a> : <strong>{entry.action}</strong>}
              <p class="meta">
                <span>{actorName(entry.actor, entry.name)}</span>
                <Time at={entry.at} full seconds />
              </p>
              <p class="meta">
                {entry.about.map(([name, value]) => (
                  <span key={name}>
                    {name} {value && <code>{value}</code>}
                  </span>
                ))}
              </p>
            </div>
          </li>
        )}
      </Rows>
    </div>
  );
}
