import { t, tn } from '../../lang/console';
import { href } from '../../ui/router';
import { Skeleton } from '../../ui/skeleton';
import { clockTime } from '../../ui/time';
import { health } from './health';
import { causesOf, lightsOf, type Light } from './lights';
import { Setup } from './setup';

/** The console's first screen: first steps of a new city, what is wrong, with what follows from it, and then what works, each with the time of its last reading. */
export function Overview() {
  const lights = lightsOf(health.value);
  if (lights.length === 0) return <Skeleton />;
  return (
    <>
      <Setup />
      <Lights lights={lights} />
    </>
  );
}

function Lights({ lights }: { lights: Light[] }) {
  const causes = causesOf(lights);
  const good = lights.filter(({ state }) => state === 'good');
  return (
    <section class="stack" aria-labelledby="overview">
      <h2 id="overview">
        <span role="status">{causes.length === 0 ? t('overview.good') : tn('overview.look', causes.length)}</span>
      </h2>
      {causes.length > 0 && (
        <ul class="stack">
          {causes.map(({ light, follow }) => (
            <li key={light.name} class="stack cause">
              <Box light={light} title={follow.some(({ name }) => name === 'notifications-database') ? 'PostgreSQL' : undefined} />
              {follow.length > 0 && <Parts summary={tn('overview.follow', follow.length)} lights={follow} />}
            </li>
          ))}
        </ul>
      )}
      <Parts key={String(causes.length > 0)} summary={tn('overview.works', good.length)} lights={good} open={causes.length === 0} />
    </section>
  );
}

function Parts({ summary, lights, open = false }: { summary: string; lights: Light[]; open?: boolean }) {
  return (
    <details class="parts" open={open}>
      <summary>{summary}</summary>
      <ul class="lights">
        {lights.map((light) => (
          <li key={light.name}>
            <Box light={light} />
          </li>
        ))}
      </ul>
    </details>
  );
}

function Box({
  light: { name, state, since, readAt, causes, path },
  title = t(`light.name.${name}`),
}: {
  light: Light;
  title?: string | undefined;
}) {
  return (
    <div class="light" data-state={state} data-light={name}>
      <a class="whole" href={href(path)}>
        {title}
      </a>
      <strong class="state">{t(`overview.state.${state}`)}</strong>
      {causes.map((cause) => (
        <p key={cause}>{cause}</p>
      ))}
      <small>
        {since && state !== 'good' && <strong>{t('light.since', { time: clockTime(since) })} · </strong>}
        {readAt ? t('light.read', { time: clockTime(readAt) }) : t('light.never-read')}
      </small>
    </div>
  );
}
