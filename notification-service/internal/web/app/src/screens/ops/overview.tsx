import { t, tn } from '../../lang/console';
import { href } from '../../ui/router';
import { clockTime } from '../../ui/time';
import { health } from './health';
import { lightsOf, type Light } from './lights';

/** The console's first screen: a light for each part, with its cause, its age, and the time of its last reading. */
export function Overview() {
  const lights = lightsOf(health.value);
  const wrong = lights.filter(({ state }) => state !== 'good').length;
  return (
    <section class="stack" aria-labelledby="overview">
      <h2 id="overview">
        <span role="status">{wrong === 0 ? t('overview.good') : tn('overview.look', wrong)}</span>
      </h2>
      <ul class="lights">
        {lights.map((light) => (
          <Box key={light.name} light={light} />
        ))}
      </ul>
    </section>
  );
}

function Box({ light: { name, state, since, readAt, causes, path } }: { light: Light }) {
  return (
    <li class="light" data-state={state} data-light={name}>
      <a class="whole" href={href(path)}>
        {t(`light.name.${name}`)}
      </a>
      <strong class="state">{t(`overview.state.${state}`)}</strong>
      {causes.map((cause) => (
        <p key={cause}>{cause}</p>
      ))}
      <small>
        {since && state !== 'good' && <strong>{t('light.since', { time: clockTime(since) })} · </strong>}
        {readAt ? t('light.read', { time: clockTime(readAt) }) : t('light.never-read')}
      </small>
    </li>
  );
}
