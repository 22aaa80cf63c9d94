import { useEffect, useState } from 'preact/hooks';

import { must, notificationService, type WorkerPool, type WorkerPools } from '../../api/client';
import { number, t, tn } from '../../lang/console';
import { Chart, ChooseScale, Spark } from '../../ui/chart';
import { Modal } from '../../ui/modal';
import { usePoll } from '../../ui/poll';
import { Fault } from '../../ui/problem';
import { Acts, readsOnly } from './acts';
import { Delayed } from './delayed/delayed';
import { ChooseRange, usePoolPast, type Past } from './past';
import { Waiting } from './waiting';

const readPools = () => must(notificationService.GET('/admin/workers'));

/** The queues with their workers, and how the broker's topology differs. */
export function Queues() {
  const { value: workers, error, refresh } = usePoll(readPools);
  const past = usePoolPast();
  if (!workers) return <Waiting error={error} retry={refresh} />;
  return (
    <div class="stack">
      <Findings findings={workers.findings} />
      <Fault error={error ?? past.error} retry={error ? refresh : past.refresh} />
      <Pools pools={workers.items} past={past.value} onDone={refresh} />
      {past.value && <Charts past={past.value} />}
      <WaitingQueues queues={workers.waiting} />
      <Nodes nodes={workers.nodes} />
      <Delayed />
    </div>
  );
}

/** The queues that no worker reads: messages wait there for another attempt, or to be archived. */
function WaitingQueues({ queues }: { queues: WorkerPools['waiting'] }) {
  return (
    <section class="panel stack" aria-labelledby="waiting-queues">
      <h2 id="waiting-queues">{t('queues.waiting-queues')}</h2>
      <dl class="states">
        {queues.map(({ queue, delay_s, of = '', depth }) => (
          <div key={queue}>
            <dt>{delay_s ? t('queues.retry', { seconds: number(delay_s) }) : t('queues.dead', { queue: of })}</dt>
            <dd>{number(depth)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** The broker's nodes with what makes them refuse messages, where the service may see them. */
function Nodes({ nodes }: { nodes: WorkerPools['nodes'] }) {
  if (nodes.length === 0) return null;
  return (
    <section class="panel stack" aria-labelledby="broker-nodes">
      <h2 id="broker-nodes">{t('queues.nodes')}</h2>
      <table class="grid">
        <thead>
          <tr>
            {(['queues.node', 'queues.memory', 'queues.disk'] as const).map((name) => (
              <th key={name} scope="col">
                {t(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {nodes.map((node) => (
            <tr key={node.name}>
              <th scope="row">
                {node.name} {!node.running && <span class="warn">{t('queues.node-down')}</span>}
              </th>
              <td data-label={t('queues.memory')} data-warn={node.memory_alarm}>
                {node.running && t('queues.memory-of', { used: gibibytes(node.memory_used), limit: gibibytes(node.memory_limit) })}{' '}
                {node.memory_alarm && t('queues.alarm')}
              </td>
              <td data-label={t('queues.disk')} data-warn={node.disk_alarm}>
                {node.running && t('queues.disk-of', { free: gibibytes(node.disk_free), limit: gibibytes(node.disk_limit) })}{' '}
                {node.disk_alarm && t('queues.alarm')}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const GIBIBYTE = 2 ** 30;

function gibibytes(bytes: number): string {
  return `${number(Math.round((bytes / GIBIBYTE) * 100) / 100)} GiB`;
}

/** How the broker differs from what it should be, and the remedy. */
function Findings({ findings }: { findings: WorkerPools['findings'] }) {
  if (findings.length === 0) return null;
  return (
    <details class="note">
      <summary>{tn('queues.findings', findings.length)}</summary>
      <ul class="stack">
        {findings.map(({ what, remedy }) => (
          <li key={what}>
            <strong>{what}</strong>
            <br />
            {remedy}
          </li>
        ))}
      </ul>
    </details>
  );
}

function Charts({ past }: { past: Past }) {
  return (
    <div class="charts">
      <Chart label={t('queues.throughput')} times={past} lines={[{ values: past.of('handled_per_s') }]} unit="/s" />
      <Chart label={t('queues.waiting')} times={past} lines={[{ values: past.of('depth') }]} />
    </div>
  );
}

interface PoolsProps {
  pools: WorkerPool[];
  past: Past | undefined;
  onDone(): void;
}

/** All queues in one table; each opens below its row. */
function Pools({ pools, past, onDone }: PoolsProps) {
  const [opened, setOpened] = useState<string>();
  return (
    <section class="stack" aria-label={t('queues')}>
      <div class="bar">
        <ChooseRange />
        <ChooseScale />
      </div>
      <table class="pools grid">
        <thead>
          <tr>
            {(['queues.queue', 'queues.waiting', 'queues.throughput', 'queues.errors', 'queues.handler', 'queues.consumers'] as const).map(
              (name) => (
                <th key={name} scope="col">
                  {t(name)}
                </th>
              ),
            )}
          </tr>
        </thead>
        {pools.map((pool) => (
          <tbody key={pool.queue}>
            <Pool pool={pool} past={past} open={opened === pool.queue} onOpen={(open) => setOpened(open ? pool.queue : undefined)} />
            {opened === pool.queue && (
              <tr class="opened">
                <td colSpan={6}>
                  <Details pool={pool} past={past} onDone={onDone} />
                </td>
              </tr>
            )}
          </tbody>
        ))}
      </table>
    </section>
  );
}

interface PoolProps {
  pool: WorkerPool;
  past: Past | undefined;
  open: boolean;
  onOpen(open: boolean): void;
}

function Pool({ pool, past, open, onOpen }: PoolProps) {
  const { queue, copies, depth, rate_per_s, error_rate, paused, consumers, stalled } = pool;
  const incomplete = copies && copies.online.length < copies.members.length;
  // Zeros say nothing: a figure stands where there is something to measure.
  const figure = (value: number, unit = '') => (value > 0 ? `${number(round(value))}${unit}` : '–');
  const spark = (label: string, name: string) => past && <Spark label={`${label}, ${queue}`} values={past.of(name, queue)} />;
  const counted = (label: string, name: string) => (pool.elsewhere ? <span class="spark" /> : spark(label, name));
  return (
    <tr>
      <th scope="row">
        <button type="button" class="link" aria-expanded={open} onClick={() => onOpen(!open)}>
          {queue}
        </button>
        {incomplete && (
          <span class="warn">
            {' '}
            {t('queues.copies-online', { online: number(copies.online.length), members: number(copies.members.length) })}
          </span>
        )}
      </th>
      <td data-label={t('queues.waiting')}>
        {spark(t('queues.waiting'), 'depth')} {figure(depth)}
      </td>
      <td data-label={t('queues.throughput')}>
        {counted(t('queues.throughput'), 'handled_per_s')} {figure(rate_per_s, '/s')}
      </td>
      <td data-label={t('queues.errors')} data-warn={error_rate > 0}>
        {figure(error_rate * 100, ' %')}
      </td>
      <td data-label={t('queues.handler')}>
        {counted(t('queues.handler'), 'handler_p99_ms')} {figure(pool.handler_p99_ms, ' ms')}
      </td>
      <td data-label={t('queues.consumers')} data-warn={stalled > 0 || (!paused && consumers === 0)}>
        {paused ? t('queues.is-paused') : number(consumers)}
        {stalled > 0 && ` · ${t('queues.stalled-are', { count: number(stalled) })}`}
      </td>
    </tr>
  );
}

/** Fields that are not compared each time: the workers' sizes, the copies, the handler's times. */
function Details({ pool, past, onDone }: { pool: WorkerPool; past: Past | undefined; onDone(): void }) {
  const [error, setError] = useState<unknown>();
  const [pausing, setPausing] = useState(false);
  const { copies } = pool;
  const change = (body: { concurrency?: number; prefetch?: number; paused?: boolean }) =>
    must(notificationService.PATCH('/admin/workers/{queue}', { params: { path: { queue: pool.queue } }, body })).then(() => {
      setError(undefined);
      onDone();
    }, setError);
  return (
    <div class="stack">
      {copies && (
        <p class="quiet">
          {t(copies.leader ? 'queues.copies-led' : 'queues.copies-unled', { leader: copies.leader, members: copies.members.join(', ') })}
        </p>
      )}
      <Acts>
        <div class="bar spread">
          <Sizes pool={pool} onChange={change} />
          {pool.paused ? (
            <button type="button" onClick={() => change({ paused: false })}>
              {t('queues.resume')}
            </button>
          ) : (
            <button type="button" class="danger-quiet" aria-haspopup="dialog" onClick={() => setPausing(true)}>
              {t('queues.pause')}
            </button>
          )}
        </div>
      </Acts>
      {readsOnly() && <p>{t('queues.sizes', { workers: number(pool.concurrency), prefetch: number(pool.prefetch) })}</p>}
      {past && !pool.elsewhere && (
        <Chart
          label={t('queues.handler')}
          times={past}
          lines={[
            { name: 'p50', values: past.of('handler_p50_ms', pool.queue) },
            { name: 'p99', values: past.of('handler_p99_ms', pool.queue) },
          ]}
          unit=" ms"
        />
      )}
      <Fault error={error} />
      {pausing && (
        <Modal title={t('queues.pause-title', { queue: pool.queue })} onClose={() => setPausing(false)}>
          <p>{t('queues.pause-hint')}</p>
          <button
            type="button"
            class="danger"
            onClick={() => {
              setPausing(false);
              void change({ paused: true });
            }}
          >
            {t('queues.pause')}
          </button>
        </Modal>
      )}
    </div>
  );
}

interface SizesProps {
  pool: WorkerPool;
  onChange(change: { concurrency: number; prefetch: number }): void;
}

function Sizes({ pool, onChange }: SizesProps) {
  const [concurrency, setConcurrency] = useState(pool.concurrency);
  const [prefetch, setPrefetch] = useState(pool.prefetch);
  // Another operator may have changed them.
  useEffect(() => setConcurrency(pool.concurrency), [pool.concurrency]);
  useEffect(() => setPrefetch(pool.prefetch), [pool.prefetch]);
  const submit = (event: Event) => {
    event.preventDefault();
    onChange({ concurrency, prefetch });
  };
  return (
    <form class="bar sizes" onSubmit={submit}>
      <label class="field">
        <span>{t('queues.workers')}</span>
        <input type="number" min={1} max={64} required value={concurrency} onInput={(e) => setConcurrency(e.currentTarget.valueAsNumber)} />
      </label>
      <label class="field">
        <span>{t('queues.prefetch')}</span>
        <input type="number" min={1} max={1000} required value={prefetch} onInput={(e) => setPrefetch(e.currentTarget.valueAsNumber)} />
      </label>
      <button disabled={concurrency === pool.concurrency && prefetch === pool.prefetch}>{t('queues.apply')}</button>
    </form>
  );
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
