import { useEffect, useState } from 'preact/hooks';

import { must, notificationService, type WorkerPool, type WorkerPools } from '../../api/client';
import { number, t, tn } from '../../lang/i18n';
import { Chart, useHistory } from '../../ui/chart';
import { Fault } from '../../ui/problem';
import { usePoll } from '../../ui/poll';
import { Delayed } from './delayed/delayed';
import { Figure } from './figure';

const read = () => must(notificationService.GET('/admin/workers'));

/** The queues with their workers, and how the broker's topology differs. */
export function Queues() {
  const pools = usePoll(read);
  return (
    <div class="stack">
      <Fault error={pools.error} retry={pools.refresh} />
      {pools.value && <Findings findings={pools.value.findings} />}
      {pools.value && <Charts pools={pools.value} />}
      <ul class="pools">
        {pools.value?.items.map((pool) => (
          <Pool key={pool.queue} pool={pool} onDone={pools.refresh} />
        ))}
      </ul>
      <Delayed />
    </div>
  );
}

/** How the broker differs from what it should be, and the remedy. */
function Findings({ findings }: { findings: WorkerPools['findings'] }) {
  if (findings.length === 0) return null;
  return (
    <details class="note">
      <summary>{tn('queues.findings', findings.length)}</summary>
      <ul class="stack">
        {findings.map(({ what, mend }) => (
          <li key={what}>
            <strong>{what}</strong>
            <br />
            {mend}
          </li>
        ))}
      </ul>
    </details>
  );
}

function Charts({ pools }: { pools: WorkerPools }) {
  const past = useHistory(pools);
  const sums = (of: (pool: WorkerPool) => number) => past.map(({ items }) => items.reduce((sum, pool) => sum + of(pool), 0));
  return (
    <div class="charts">
      <Chart label={t('queues.throughput')} lines={[{ values: sums((pool) => pool.rate_per_s) }]} unit="/s" />
      <Chart label={t('queues.waiting')} lines={[{ values: sums((pool) => pool.depth) }]} />
    </div>
  );
}

function Pool({ pool, onDone }: { pool: WorkerPool; onDone(): void }) {
  const [error, setError] = useState<unknown>();
  const past = useHistory(pool);
  const change = (body: { concurrency?: number; prefetch?: number; paused?: boolean }) =>
    must(notificationService.PATCH('/admin/workers/{queue}', { params: { path: { queue: pool.queue } }, body })).then(() => {
      setError(undefined);
      onDone();
    }, setError);
  return (
    <li class="panel stack">
      <div class="bar spread">
        <h2>{pool.queue}</h2>
        <button type="button" aria-pressed={pool.paused} onClick={() => change({ paused: !pool.paused })}>
          {t(pool.paused ? 'queues.resume' : 'queues.pause')}
        </button>
      </div>
      <dl class="figures">
        <Figure label={t('queues.waiting')} value={number(pool.depth)} />
        <Figure label={t('queues.throughput')} value={`${number(round(pool.rate_per_s))}/s`} />
        <Figure label={t('queues.errors')} value={`${number(round(pool.error_rate * 100))} %`} warn={pool.error_rate > 0} />
        <Figure label={t('queues.consumers')} value={number(pool.consumers)} warn={!pool.paused && pool.consumers === 0} />
        <Figure label={t('queues.stalled')} value={number(pool.stalled)} warn={pool.stalled > 0} />
      </dl>
      <Chart
        label={t('queues.handler')}
        lines={[
          { name: 'p50', values: past.map((then) => then.handler_p50_ms || undefined) },
          { name: 'p99', values: past.map((then) => then.handler_p99_ms || undefined) },
        ]}
        unit=" ms"
      />
      <Sizes pool={pool} onChange={change} />
      <Fault error={error} />
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
