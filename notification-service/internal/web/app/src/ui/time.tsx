/** Times as people say them, with the exact one at hand. */
import { computed, signal } from '@preact/signals';

import { language } from '../lang/i18n';

/** Now, to the half minute: all times on the page age together. */
export const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 30_000);

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];

/** Made once a language, and not before it is wanted: making one takes much longer than using it. */
const since = computed(() => new Intl.RelativeTimeFormat(language.value, { numeric: 'auto' }));
const exact = computed(() => new Intl.DateTimeFormat(language.value, { dateStyle: 'medium', timeStyle: 'short' }));

export function ago(date: Date): string {
  const seconds = (now.value - date.getTime()) / 1000;
  // Less than a minute is now, and so is the future: a server's clock may be ahead.
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ['second', Infinity];
  return since.value.format(-Math.floor(seconds / size), unit);
}

export function exactly(date: Date): string {
  return exact.value.format(date);
}

/** Shows the exact time when somebody points at an element. */
export function tellExactly(date: Date) {
  return (event: { currentTarget: HTMLElement }) => {
    event.currentTarget.title = exactly(date);
  };
}

/** The time since at; with full, the exact time stands beside it. */
export function Time({ at, full }: { at: string | Date; full?: boolean }) {
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} onPointerEnter={tellExactly(date)}>
      {ago(date)}
      {full && <span class="quiet"> · {exactly(date)}</span>}
    </time>
  );
}
