import { signal } from '@preact/signals';

import { must, notificationService, type WebhookHistory } from '../../../api/client';
import { number, t } from '../../../lang/console';
import { Chart } from '../../../ui/chart';
import { Choice } from '../../../ui/field';
import { usePoll } from '../../../ui/poll';
import { Fault } from '../../../ui/problem';
import { exactTime } from '../../../ui/time';

/** How far back the charts reach, with how many steps each has and how often it is read. */
const SPANS = { hour: { steps: 60, pollMs: 10_000 }, week: { steps: 168, pollMs: 60_000 } } as const;
type Span = keyof typeof SPANS;

const span = signal<Span>('hour');

export interface Past {
  /** When the first step begins, and how long each is, in milliseconds. */
  since: number;
  step: number;
  /** In percent; a step without an attempt has none. */
  rates: (number | undefined)[];
  p95: (number | undefined)[];
  succeeded: number;
  attempts: number;
  /** The step with the lowest rate, if anything failed. */
  worst: { at: number; rate: number } | undefined;
  /** Whether there were more deliveries than are read, so that it begins later. */
  shortened: boolean;
}

/** The counts of the service, step by step up to the present one. */
export function pastOf({ since, step_seconds, points }: WebhookHistory, of: Span, now = Date.now()): Past {
  const [begin, step] = [Date.parse(since), step_seconds * 1000];
  const steps = Math.max(1, Math.min(SPANS[of].steps, Math.floor((now - begin) / step) + 1));
  const past: Past = {
    since: begin,
    step,
    rates: Array.from({ length: steps }, () => undefined),
    p95: Array.from({ length: steps }, () => undefined),
    succeeded: 0,
    attempts: 0,
    worst: undefined,
    shortened: steps < SPANS[of].steps - 1, // the clocks may differ
  };
  for (const { at, succeeded, failed, p95_ms } of points) {
    const [i, all] = [Math.round((Date.parse(at) - begin) / step), succeeded + failed];
    if (i < 0 || i >= steps || all === 0) continue;
    const rate = Math.floor((succeeded / all) * 1000) / 10; // 999 of 1000 are not all of them
    past.rates[i] = rate;
    past.p95[i] = p95_ms;
    past.succeeded += succeeded;
    past.attempts += all;
    if (rate < (past.worst?.rate ?? 100)) past.worst = { at: begin + i * step, rate };
  }
  return past;
}

/** How the attempts to reach an endpoint went: drawn, and in words. */
export function EndpointPast({ id }: { id: string }) {
  const of = span.value;
  const read = async () => {
    const params = { path: { id }, query: { span: of } };
    return { of, past: pastOf(await must(notificationService.GET('/admin/webhooks/{id}/history', { params })), of) };
  };
  const found = usePoll(read, [id, of], SPANS[of].pollMs);
  const past = found.value?.of === of ? found.value.past : undefined;
  return (
    <section class="stack" aria-label={t('webhooks.past')}>
      <div class="bar">
        <Choice
          class="range"
          label={t('chart.range')}
          value={of}
          options={(Object.keys(SPANS) as Span[]).map((each) => [each, t(`webhooks.past.${each}`)])}
          onValue={(each) => (span.value = each as Span)}
        />
      </div>
      <Fault error={found.error} retry={found.refresh} />
      {past && (
        <>
          <p>{inWords(past)}</p>
          {past.shortened && <p class="quiet">{t('webhooks.past.shortened', { time: exactTime(new Date(past.since)) })}</p>}
          <div class="charts">
            <Chart label={t('webhooks.past.rate')} times={past} lines={[{ values: past.rates }]} unit=" %" />
            <Chart label={t('webhooks.p95')} times={past} lines={[{ values: past.p95 }]} unit=" ms" />
          </div>
        </>
      )}
    </section>
  );
}

function inWords({ succeeded, attempts, worst }: Past): string {
  if (attempts === 0) return t('webhooks.past.none');
  const all = t('webhooks.past.all', { succeeded: number(succeeded), attempts: number(attempts) });
  if (!worst) return all;
  return `${all} ${t('webhooks.past.worst', { rate: number(worst.rate), time: exactTime(new Date(worst.at)) })}`;
}
