/** The console's first screen, made of the readings of both services. */
import type { HealthPart } from '../../api/client';
import { isCounted, isWord, number, t, tn } from '../../lang/console';
import { SERVICES, type Health, type Service } from './health';

/** Of a light: good, worth a look, to be acted on now, or not known. */
export type State = 'good' | 'warning' | 'bad' | 'unknown';

type PartName = HealthPart['name'];

/** The lights in their order, each with what it is made of and where to act. */
const LIGHTS = {
  gateway: { of: [], path: 'ops' },
  'reports-database': { of: [['reports', 'database']], path: 'ops' },
  'notifications-database': { of: [['notifications', 'database']], path: 'ops' },
  broker: {
    of: [
      ['reports', 'broker'],
      ['notifications', 'broker'],
    ],
    path: 'ops/queues',
  },
  relay: { of: [['reports', 'relay']], path: 'ops/outbox' },
  outbox: { of: [['reports', 'outbox']], path: 'ops/outbox' },
  consumers: { of: [['notifications', 'consumers']], path: 'ops/queues' },
  dead: { of: [['notifications', 'dead_letters']], path: 'ops/dead-letters' },
  photos: { of: [['reports', 'photos']], path: 'ops/queues' },
  mail: { of: [['notifications', 'mail']], path: 'ops/email' },
  push: { of: [['notifications', 'push']], path: 'ops/queues' },
  webhooks: { of: [['notifications', 'webhooks']], path: 'ops/webhooks' },
  'back-office': { of: [['notifications', 'back_office']], path: 'ops/back-office' },
  reconciliation: {
    of: [
      ['reports', 'reconciliation'],
      ['notifications', 'reconciliation'],
    ],
    path: 'ops/reconciliation',
  },
  jobs: {
    of: [
      ['reports', 'jobs'],
      ['notifications', 'jobs'],
    ],
    path: 'ops/schedules',
  },
} as const satisfies Record<string, { of: (readonly [Service, PartName])[]; path: string }>;

export type LightName = keyof typeof LIGHTS;

export interface Light {
  name: LightName;
  state: State;
  /** Since when it is so, where it is not good. */
  since: Date | undefined;
  /** When its sources last answered. */
  readAt: Date | undefined;
  /** The causes in words: a sentence for each. */
  causes: string[];
  /** The light of what it needs, where that is what its reading names. */
  needs: LightName | undefined;
  path: string;
}

/** The reading of a part at one service. */
interface Reading {
  service: Service;
  part: PartName;
  state: State;
  cause: string;
  names: string;
  count: number;
  since: Date | undefined;
  readAt: Date | undefined;
}

const WORST: State[] = ['bad', 'unknown', 'warning', 'good'];

/** All lights of what this city has; none before both services were asked. */
export function lightsOf(health: Health): Light[] {
  if (SERVICES.some((service) => !health[service].parts && !health[service].missing)) return [];
  return (Object.keys(LIGHTS) as LightName[]).flatMap((name) => {
    if (name === 'gateway') return [gateway(health)];
    const { of, path } = LIGHTS[name];
    const all = of.map(([service, part]) => readingOf(health, service, part)).filter((reading) => reading !== 'off');
    if (all.length === 0) return [];
    // Both services see the same broker: what one of them knows is known.
    const known = all.filter(({ state }) => state !== 'unknown');
    return [lightOf(name, path, name === 'broker' && known.length > 0 ? known : all)];
  });
}

function lightOf(name: LightName, path: string, readings: Reading[]): Light {
  const state = WORST.find((worst) => readings.some((reading) => reading.state === worst)) ?? 'unknown';
  const wrong = readings.filter((reading) => reading.state !== 'good');
  return {
    name,
    state,
    path,
    since: earliest(wrong.filter((reading) => reading.state === state).map(({ since }) => since)),
    readAt: earliest(readings.map(({ readAt }) => readAt)),
    needs: wrong.map(neededBy).find((needed) => needed && needed !== name),
    causes: wrong.length > 0 ? [...new Set(wrong.map(sentence))] : [t(`light.good.${name}`), ...nodesOf(name, readings)],
  };
}

/** The part without which another one does not work, or cannot be read. */
function neededBy({ service, cause }: Reading): LightName | undefined {
  if (cause === 'database') return `${service}-database`;
  if (cause === 'broker' || cause === 'disconnected' || cause === 'blocked') return 'broker';
  return cause === 'no-service' ? 'gateway' : undefined;
}

/** A light that is not good, and those that are not good only because of it. */
export interface Cause {
  light: Light;
  follow: Light[];
}

/**
 * The lights that are not good, under their causes: a light that needs another one which is not
 * good either follows from it, and so does one that says the same as an earlier one. Where
 * neither database answers, they are one server.
 */
export function causesOf(lights: Light[]): Cause[] {
  const wrong = lights.filter(({ state }) => state !== 'good');
  const find = (name: LightName | undefined) => wrong.find((light) => light.name === name);
  const rootOf = (light: Light): Light => {
    const needed =
      light.name === 'notifications-database' && !light.needs && !find('reports-database')?.needs ? 'reports-database' : light.needs;
    const root = find(needed);
    return root ? rootOf(root) : (wrong.find(({ causes }) => causes.join() === light.causes.join()) ?? light);
  };
  const roots = wrong.filter((light) => rootOf(light) === light);
  return roots.map((light) => ({ light, follow: wrong.filter((each) => each !== light && rootOf(each) === light) }));
}

/** The nodes of a broker that does its work, where the service may see them. */
function nodesOf(name: LightName, readings: Reading[]): string[] {
  const seen = name === 'broker' && readings.find(({ names }) => names);
  return seen ? [t('light.nodes', { names: seen.names })] : [];
}

function readingOf(health: Health, service: Service, name: PartName): Reading | 'off' {
  const source = health[service];
  const part = source.parts?.find((each) => each.name === name);
  if (part?.state === 'off') return 'off';
  const readAt = part?.read_at ? new Date(part.read_at) : undefined;
  const reading = { service, part: name, names: '', count: 0, since: undefined, readAt };
  if (source.missing) return { ...reading, state: 'unknown', cause: 'no-service', since: new Date(source.missing.since) };
  if (!part) return { ...reading, state: 'unknown', cause: 'not_read' };
  return {
    ...reading,
    state: part.state,
    cause: part.cause ?? '',
    names: part.names.join(', '),
    count: part.count,
    since: new Date(part.since),
  };
}

/** The way from this page to both services, which the page alone can see. */
function gateway(health: Health): Light {
  const light = { name: 'gateway', path: LIGHTS.gateway.path, needs: undefined } as const;
  const answered = Math.max(...SERVICES.map((service) => health[service].answeredAt ?? 0));
  const readAt = answered > 0 ? new Date(answered) : undefined;
  const missing = SERVICES.flatMap((service) => (health[service].missing ? [{ service, ...health[service].missing }] : []));
  if (missing.length === 0) {
    const state = readAt ? 'good' : 'unknown';
    return { ...light, state, since: undefined, readAt, causes: [t(readAt ? 'light.good.gateway' : 'light.not_read')] };
  }
  const since = earliest(missing.map((each) => new Date(each.since)));
  // Nothing at all came: whose fault that is cannot be told from here.
  if (missing.length === SERVICES.length && missing.every(({ how }) => how === 'network')) {
    return { ...light, state: 'bad', since, readAt, causes: [t('light.gateway.network')] };
  }
  const causes = missing.map(({ service, how }) =>
    t(`light.gateway.${how === 'network' ? 'gateway' : how}`, { service: programOf(service) }),
  );
  return { ...light, state: 'bad', since, readAt, causes };
}

/** The fault as a sentence. */
function sentence({ service, part, cause, names, count }: Reading): string {
  const all = {
    names,
    count: number(count),
    service: programOf(service),
    server: serverOf(part === 'broker' ? 'broker' : 'database', service),
  };
  if (cause === 'database' || cause === 'broker') all.server = serverOf(cause, service);
  for (const key of [`light.${part}.${cause}`, `light.${cause}`]) {
    if (isCounted(key)) return tn(key, count, all);
    if (isWord(key)) return t(key, all);
  }
  return t('light.other', { ...all, cause });
}

function programOf(service: Service): string {
  return service === 'reports' ? 'report-service' : 'notification-service';
}

function serverOf(kind: 'broker' | 'database', service: Service): string {
  return kind === 'broker' ? 'RabbitMQ' : t(`light.server.${service}`);
}

function earliest(times: (Date | undefined)[]): Date | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length > 0 ? new Date(Math.min(...known.map(Number))) : undefined;
}
