import { number, t, tn, type Word } from '../../lang/console';
import { connection } from '../../live/live';
import { href } from '../../ui/router';
import type { Reading } from './readings';

/** Good, worth a look, or to be acted on now; unknown where a service did not answer. */
export type State = 'good' | 'look' | 'bad' | 'unknown';

export interface Light {
  part: 'relay' | 'broker' | 'consumers' | 'dead' | 'outbox' | 'stream';
  state: State;
  /** What there is to say, in words. */
  text: string;
  /** Where to act. */
  path: string;
}

/** A message that waits longer is late. */
const LATE_S = 10;

/** What the console says at first sight. */
export function Overview({ reading }: { reading: Reading }) {
  const lights = lightsOf(reading, connection.value.state === 'live');
  const worst = lights.filter(({ state }) => state !== 'good').length;
  return (
    <section class="stack" aria-labelledby="overview">
      <h2 id="overview">{worst === 0 ? t('overview.good') : tn('overview.look', worst)}</h2>
      <ul class="lights">
        {lights.map(({ part, state, text, path }) => (
          <li key={part} class="light" data-state={state}>
            <a class="whole" href={href(path)}>
              {t(`overview.${part}`)}
            </a>
            <strong class="state">{t(`overview.state.${state}`)}</strong>
            <p>{text}</p>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The state of each part, as far as the reading has it. */
export function lightsOf({ workers, outbox, open }: Reading, live: boolean): Light[] {
  const light = (part: Light['part'], path: string, known: boolean, rules: [boolean, State, Word, Record<string, string>?][]): Light => {
    if (!known) return { part, path, state: 'unknown', text: t('problem.no-answer') };
    const [, state, word, values] = rules.find(([holds]) => holds) ?? [true, 'good', `overview.${part}.good` as Word];
    return { part, path, state, text: t(word, values) };
  };
  const relay = outbox?.relay;
  const pools = workers?.items ?? [];
  const stalled = pools.reduce((sum, pool) => sum + pool.stalled, 0);
  const idle = pools.filter((pool) => !pool.paused && pool.consumers === 0);
  const paused = pools.filter((pool) => pool.paused);
  const names = (some: typeof pools) => some.map(({ queue }) => queue).join(', ');
  const circuits = Object.keys(relay?.open_circuits ?? {});
  return [
    light('relay', 'ops/outbox', relay !== undefined, [
      [!relay?.connected, 'bad', 'overview.relay.away', { error: relay?.last_error ?? '' }],
      [relay?.blocked !== undefined, 'bad', 'overview.relay.blocked', { error: relay?.blocked ?? '' }],
      [circuits.length > 0, 'bad', 'overview.relay.circuits', { kinds: circuits.join(', ') }],
      [!relay?.lease_valid && outbox?.replicas === 1, 'look', 'overview.relay.lease'],
    ]),
    light('broker', 'ops/queues', workers !== undefined, [
      [(workers?.findings.length ?? 0) > 0, 'look', 'overview.broker.differs', { count: number(workers?.findings.length ?? 0) }],
    ]),
    light('consumers', 'ops/queues', workers !== undefined, [
      [idle.length > 0, 'bad', 'overview.consumers.none', { queues: names(idle) }],
      [stalled > 0, 'bad', 'overview.consumers.stalled', { count: number(stalled) }],
      [paused.length > 0, 'look', 'overview.consumers.paused', { queues: names(paused) }],
    ]),
    light('dead', 'ops/dead-letters', open !== undefined, [[(open ?? 0) > 0, 'bad', 'overview.dead.open', { count: number(open ?? 0) }]]),
    light('outbox', 'ops/outbox', outbox !== undefined, [
      [(outbox?.failed ?? 0) > 0, 'bad', 'overview.outbox.failed', { count: number(outbox?.failed ?? 0) }],
      [
        (outbox?.oldest_pending_seconds ?? 0) > LATE_S,
        'look',
        'overview.outbox.late',
        { seconds: number(Math.round(outbox?.oldest_pending_seconds ?? 0)) },
      ],
    ]),
    light('stream', 'ops/queues', true, [[!live, 'look', 'overview.stream.away']]),
  ];
}
