import { useEffect, useState } from 'preact/hooks';

import { must, notificationService, type WorkerPool, type WorkerPools } from '../../api/client';
import { number, t, tn } from '../../lang/console';
import { Chart } from '../../ui/chart';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { Delayed } from './delayed/delayed';
import { Figure } from './figure';
import { ChooseRange, usePoolPast, type Past } from './past';
import type { Reading } from './readings';

/** The queues with their workers, and how the broker's topology differs. */
export function Queues({ reading: { workers }, refresh }: { reading: Reading; refresh(): void }) {
  const past = usePoolPast();
  if (!workers) return null;
  return (
    <div class="stack">
      <Findings findings={workers.findings} />
      <Fault error={past.error} retry={past.refresh} />
      {past.value && <Charts past={past.value} />}
      <ul class="pools">
        {workers.items.map((pool) => (
          <Pool key={pool.queue} pool={pool} past={past.value} onDone={refresh} />
        ))}
      </ul>
      <WaitingQueues queues={workers.waiting} />
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
    <>
      <ChooseRange />
      <div class="charts">
        <Chart label={t('queues.throughput')} times={past} lines={[{ values: past.of('handled_per_s') }]} unit="/s" />
        <Chart label={t('queues.waiting')} times={past} lines={[{ values: past.of('depth') }]} />
      </div>
    </>
  );
}

function Pool({ pool, past, onDone }: { pool: WorkerPool; past: Past | undefined; onDone(): void }) {
  const [error, setError] = useState<unknown>();
  const [pausing, setPausing] = useState(false);
  const { copies } = pool;
  const change = (body: { concurrency?: number; prefetch?: number; paused?: boolean }) =>
    must(notificationService.PATCH('/admin/workers/{queue}', { params: { path: { queue: pool.queue } }, body })).then(() => {
      setError(undefined);
      onDone();
    }, setError);
  return (
    <li class="panel stack">
      <div class="bar spread">
        <h2>{pool.queue}</h2>
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
      <dl class="figures">
        <Figure label={t('queues.waiting')} value={number(pool.depth)} />
        <Figure label={t('queues.throughput')} value={`${number(round(pool.rate_per_s))}/s`} />
        <Figure label={t('queues.errors')} value={`${number(round(pool.error_rate * 100))} %`} warn={pool.error_rate > 0} />
        <Figure label={t('queues.consumers')} value={number(pool.consumers)} warn={!pool.paused && pool.consumers === 0} />
        <Figure label={t('queues.stalled')} value={number(pool.stalled)} warn={pool.stalled > 0} />
        {copies && (
          <Figure
            label={t('queues.copies')}
            value={t('queues.copies-online', { online: number(copies.online.length), members: number(copies.members.length) })}
            warn={copies.online.length < copies.members.length}
          />
        )}
      </dl>
      {copies && (
        <p class="quiet">
          {t(copies.leader ? 'queues.copies-led' : 'queues.copies-unled', { leader: copies.leader, members: copies.members.join(', ') })}
        </p>
      )}
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
      <Sizes pool={pool} onChange={change} />
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
    </li>
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
