/**
 * The counts of all replicas in the last hours. The services keep them, so that a
 * chart has a past as soon as it is opened.
 */
import { signal } from '@preact/signals';

import { must, notificationService, reportService } from '../../api/client';
import { t } from '../../lang/console';
import { Choice } from '../../ui/field';
import { usePoll, type Polled } from '../../ui/poll';

/** How far back charts may reach, in minutes. */
const RANGES = [15, 60, 360] as const;
type Range = (typeof RANGES)[number];

const range = signal<Range>(60);

/** Services write it down every ten seconds. Hours change more slowly. */
const pollMs = () => (range.value > 60 ? 60_000 : 10_000);

interface History {
  since: string;
  step_seconds: number;
  replicas: number[];
  series: { name: string; queue?: string; runs: { from: number; values: number[] }[] }[];
}

export interface Past {
  /** When the first step begins, and how long each is, in milliseconds. */
  since: number;
  step: number;
  /** The values of a series in each step: of one queue, or the sum of all. Without an answer yet there are none. */
  of(name: string, queue?: string): (number | undefined)[];
}

/** Reads the past of the queues while it is shown. */
export function usePoolPast(): Polled<Past> {
  return usePast((query) => must(notificationService.GET('/admin/workers/history', { params: { query } })));
}

/** Reads the past of the outbox while it is shown. */
export function useOutboxPast(): Polled<Past> {
  return usePast((query) => must(reportService.GET('/admin/outbox/history', { params: { query } })));
}

function usePast(read: (query: { minutes: number }) => Promise<History>): Polled<Past> {
  return usePoll(async () => pastOf(await read({ minutes: range.value })), [range.value], pollMs());
}

export function pastOf({ since, step_seconds, replicas, series }: History): Past {
  return {
    since: Date.parse(since),
    step: step_seconds * 1000,
    of(name, queue) {
      const sums: (number | undefined)[] = replicas.map(() => undefined);
      const wanted = series.filter((each) => each.name === name && (queue === undefined || each.queue === queue));
      for (const { from, values } of wanted.flatMap(({ runs }) => runs)) {
        values.forEach((value, i) => (sums[from + i] = (sums[from + i] ?? 0) + value));
      }
      return sums;
    },
  };
}

/** Chooses how far back all charts reach. */
export function ChooseRange() {
  return (
    <Choice
      class="range"
      label={t('chart.range')}
      value={range.value}
      options={RANGES.map((minutes) => [minutes, t(`chart.range.${minutes}`)])}
      onValue={(minutes) => (range.value = Number(minutes) as Range)}
    />
  );
}
