/**
 * The state of their parts as both services have read it, kept for as long as the page is
 * open. Each service is asked by itself: one that does not answer takes nothing
 * from what the other says, nor what it said itself when it last answered.
 */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

import { Failure, must, notificationService, reportService, type HealthPart } from '../../api/client';

export const SERVICES = ['reports', 'notifications'] as const;
export type Service = (typeof SERVICES)[number];

/** Why a service's answer is missing: nothing came, it took too long, or the gateway reaches no replica. */
export type Missing = 'network' | 'timeout' | 'gateway';

export interface Source {
  /** Its last answer; absent before the first. */
  parts?: HealthPart[];
  /** When it last answered, by the browser's clock. */
  answeredAt?: number;
  /** That it does not answer now, since when, and how that shows. */
  missing?: { since: number; how: Missing };
}

export type Health = Record<Service, Source>;

/** Both services, as far as they are known. */
export const health = signal<Health>({ reports: {}, notifications: {} });

const EVERY_MS = 2_000;
/** The tab's title counts problems while nobody looks at the page, too. */
const HIDDEN_MS = 10_000;
/** A service answers from memory. */
const TIMEOUT_MS = 4_000;

const ask = {
  reports: (signal: AbortSignal) => must(reportService.GET('/admin/reports/health', { signal })),
  notifications: (signal: AbortSignal) => must(notificationService.GET('/admin/notifications/health', { signal })),
};

/** Reads one service once. */
export async function read(service: Service): Promise<void> {
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), TIMEOUT_MS);
  try {
    const { parts } = await ask[service](timeout.signal);
    set(service, { parts, answeredAt: Date.now() });
  } catch (failure) {
    const how = timeout.signal.aborted ? 'timeout' : failure instanceof Failure && failure.problem ? 'gateway' : 'network';
    const before = health.value[service];
    set(service, { ...before, missing: { since: before.missing?.since ?? before.answeredAt ?? Date.now(), how } });
  } finally {
    clearTimeout(timer);
  }
}

function set(service: Service, source: Source): void {
  health.value = { ...health.value, [service]: source };
}

/** Reads both services for as long as the console is open. */
export function useHealth(): void {
  useEffect(() => {
    let stopped = false;
    const timers = new Map<Service, number>();
    const tick = async (service: Service) => {
      await read(service);
      if (!stopped) timers.set(service, window.setTimeout(tick, document.visibilityState === 'visible' ? EVERY_MS : HIDDEN_MS, service));
    };
    const start = () => {
      for (const service of SERVICES) {
        clearTimeout(timers.get(service));
        void tick(service);
      }
    };
    const shown = () => document.visibilityState === 'visible' && !stopped && start();
    start();
    document.addEventListener('visibilitychange', shown);
    return () => {
      stopped = true;
      timers.forEach((timer) => clearTimeout(timer));
      document.removeEventListener('visibilitychange', shown);
    };
  }, []);
}

/** The latest reading of a part, if its service ever answered. */
export function partOf(service: Service, name: HealthPart['name'], of = health.value): HealthPart | undefined {
  return of[service].parts?.find((part) => part.name === name);
}
