import { must, notificationService, reportService, type SetupItem as Item } from '../../api/client';
import { t } from '../../lang/setup';
import { config } from '../../state/config';
import { readContact } from '../../state/notify';
import { useAct } from '../../ui/act';
import { usePoll } from '../../ui/poll';
import { Fault } from '../../ui/problem';
import { href } from '../../ui/router';
import { readsOnly } from './acts';
import { isFirst } from './calendar/calendar';
import { TONE } from './tone';

/** Nothing of this changes by itself within seconds. */
const EVERY_MS = 15_000;
const DAY_MS = 86_400_000;

/** The steps of a city in the order in which they are done, and where. */
const ITEMS: Record<Item, string> = {
  identity_provider: 'ops/city',
  mail: 'settings',
  name: 'ops/city',
  languages: 'ops/city',
  map: 'ops/city',
  categories: 'ops/categories',
  departments: 'ops/departments',
  areas: 'ops/areas',
  calendar: 'ops/calendar',
  official: 'ops/people',
  backup: 'ops/schedules',
  alerts: 'ops/queues',
};
const NAMES = Object.keys(ITEMS) as Item[];

/** The revision with which every city begins. */
const FIRST_REVISION = /^(?:W\/)?"1"$/;

/** The steps that are ticked, and those that are done. */
async function read(): Promise<{ ticked: Item[]; there: Set<Item> }> {
  let ownCategories = false;
  const [setup, contact, , { departments }, { features }, calendar, { people }] = await Promise.all([
    must(notificationService.GET('/admin/setup')),
    config.mails ? readContact() : null,
    must(
      reportService.GET('/reports/categories').then((got) => {
        ownCategories = !FIRST_REVISION.test(got.response.headers.get('ETag') ?? '"1"');
        return got;
      }),
    ),
    must(reportService.GET('/reports/departments')),
    must(reportService.GET('/reports/areas', { params: { query: { geometry: 'none' } } })),
    must(reportService.GET('/reports/calendar')),
    must(reportService.GET('/admin/reports/people', { params: { query: { limit: 100 } } })),
  ]);
  const isRecent = (at = '') => Date.now() - Date.parse(at) < DAY_MS;
  const there: Record<Item, boolean> = {
    identity_provider: config.auth.mode === 'oidc',
    mail: contact?.state === 'active',
    name: Boolean(config.city?.name && config.city.logo),
    languages: Boolean(config.city?.languages.length),
    map: Boolean(config.map.tiles && config.map.bounds),
    categories: ownCategories,
    departments: departments.length > 0,
    areas: features.length > 0,
    calendar: !isFirst(calendar),
    official: people.some(({ role }) => role === 'official' || role === 'moderator'),
    backup: isRecent(setup.log_archived_at),
    alerts: isRecent(setup.metrics_read_at),
  };
  return { ticked: setup.done, there: new Set(NAMES.filter((name) => there[name])) };
}

/** The steps that are left, until all are done or ticked. Whoever only reads the console does not see them. */
export function Setup() {
  return readsOnly() ? null : <Steps />;
}

function Steps() {
  const found = usePoll(read, [], EVERY_MS);
  const { busy, error, run } = useAct();
  if (!found.value) return null;
  const { ticked, there } = found.value;
  const missing = NAMES.filter((name) => !there.has(name) && !ticked.includes(name));
  if (missing.length === 0) return null;
  const tick = (done: Item[]) =>
    void run(() => must(notificationService.PUT('/admin/setup', { body: { done } })).then(() => found.refresh()));
  return (
    <section class="panel stack setup" aria-labelledby="setup" aria-busy={busy}>
      <div class="bar spread">
        <h2 id="setup">{t('setup')}</h2>
        <span role="status">{t('setup.count', { done: NAMES.length - missing.length, all: NAMES.length })}</span>
      </div>
      <p class="quiet">{t('setup.hint')}</p>
      <ol class="rows">
        {NAMES.map((name) => {
          const state = there.has(name) ? 'there' : ticked.includes(name) ? 'ticked' : 'missing';
          const words = state === 'missing' ? 'setup.tick' : 'setup.untick';
          return (
            <li key={name} data-step={name} data-state={state}>
              <div>
                <a href={href(ITEMS[name])}>{t(`setup.${name}`)}</a>
                {state === 'missing' && <small class="quiet">{t(`setup.${name}.hint`)}</small>}
              </div>
              <span class="badge" data-status={state === 'missing' ? TONE.waiting : TONE.good}>
                {t(`setup.${state}`)}
              </span>
              {state !== 'there' && (
                <button
                  type="button"
                  class="link"
                  aria-label={t(`${words}-one`, { name: t(`setup.${name}`) })}
                  onClick={() => tick(state === 'missing' ? [...ticked, name] : ticked.filter((each) => each !== name))}
                >
                  {t(words)}
                </button>
              )}
            </li>
          );
        })}
      </ol>
      <Fault error={error} />
      <p class="bar">
        <button type="button" onClick={() => tick(NAMES)}>
          {t('setup.dismiss')}
        </button>
      </p>
    </section>
  );
}
