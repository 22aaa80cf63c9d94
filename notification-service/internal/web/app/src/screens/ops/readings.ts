/** What the console knows of both services now. It is read while any of its tabs is open. */
import { must, notificationService, reportService, type OutboxStats, type WorkerPools } from '../../api/client';
import { usePoll, type Polled } from '../../ui/poll';

/** Parts are absent where their service did not answer. */
export interface Reading {
  workers?: WorkerPools;
  outbox?: OutboxStats;
  /** How many dead letters are open. */
  open?: number;
}

export interface Readings extends Polled<Reading> {
  /** Why a part of the latest reading is absent. */
  failures: unknown[];
}

/** Reads while the console is open. */
export function useReadings(): Readings {
  const polled = usePoll(read);
  return { ...polled, value: polled.value?.reading, failures: polled.value?.failures ?? [] };
}

async function read() {
  const [workers, outbox, dead] = await Promise.allSettled([
    must(notificationService.GET('/admin/workers')),
    must(reportService.GET('/admin/outbox/stats')),
    must(notificationService.GET('/admin/dlq/stats')),
  ]);
  const reading: Reading = {
    ...(workers.status === 'fulfilled' && { workers: workers.value }),
    ...(outbox.status === 'fulfilled' && { outbox: outbox.value }),
    ...(dead.status === 'fulfilled' && { open: dead.value.items.reduce((sum, queue) => sum + queue.open, 0) }),
  };
  const failures = [workers, outbox, dead].flatMap((part): unknown[] => (part.status === 'rejected' ? [part.reason] : []));
  return { reading, failures };
}
