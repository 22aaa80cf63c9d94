/** Times as people say them, with the exact one at hand. */
import { computed, signal } from '@preact/signals';

import { language } from '../lang/i18n';

/** Now, to the half minute: all times on the page change together. */
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

const DAY_MS = 86_400_000;

/** Made once a language, when first used: making one takes much longer than using it. */
const since = computed(() => new Intl.RelativeTimeFormat(language.value, { numeric: 'auto' }));
const exact = computed(() => new Intl.DateTimeFormat(language.value, { dateStyle: 'medium', timeStyle: 'short' }));
const precise = computed(() => new Intl.DateTimeFormat(language.value, { dateStyle: 'medium', timeStyle: 'medium' }));

export function ago(date: Date): string {
  const seconds = (now.value - date.getTime()) / 1000;
  // Less than a minute is now, and so is the future: a server's clock may be ahead.
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ['second', Infinity];
  return since.value.format(-Math.floor(seconds / size), unit);
}

/** How long something has been, in as few letters as a list has room for. */
export function age(date: Date): string {
  const seconds = (now.value - date.getTime()) / 1000;
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? [];
  if (!unit || !size) return since.value.format(0, 'second');
  return new Intl.NumberFormat(language.value, { style: 'unit', unit, unitDisplay: 'short' }).format(Math.floor(seconds / size));
}

/** A day as people name it: its weekday, day and month. */
export function dayName(date: Date): string {
  return new Intl.DateTimeFormat(language.value, { weekday: 'long', day: 'numeric', month: 'long' }).format(date);
}

/** The last day of what ends at a moment, which may be the midnight after it. */
export const lastDay = (end: string) => dayName(new Date(Date.parse(end) - 1));

/** A date of the city, such as 2026-12-11, as people name that day. */
export function dayOf(date: string): string {
  const form: Intl.DateTimeFormatOptions = { weekday: 'long', day: 'numeric', month: 'long', timeZone: 'UTC' };
  return new Intl.DateTimeFormat(language.value, form).format(new Date(date));
}

export function exactTime(date: Date): string {
  return exact.value.format(date);
}

const clock = computed(() => new Intl.DateTimeFormat(language.value, { timeStyle: 'short' }));

export function timeOfDay(date: Date): string {
  return clock.value.format(date);
}

/** The day of the week in short, for the axis of a chart. */
export function weekday(date: Date): string {
  return new Intl.DateTimeFormat(language.value, { weekday: 'short' }).format(date);
}

/** The reader's word for a day of the week, counted from Monday. */
export function weekdayName(day: number): string {
  const monday = Date.UTC(2026, 0, 5);
  return new Intl.DateTimeFormat(language.value, { weekday: 'long', timeZone: 'UTC' }).format(monday + day * 86_400_000);
}

const clockWithSeconds = computed(() => new Intl.DateTimeFormat(language.value, { timeStyle: 'medium' }));

export function timeWithSeconds(date: Date): string {
  return clockWithSeconds.value.format(date);
}

/** A time of today to the second, an earlier one with its date. */
export function clockTime(date: Date): string {
  return date.toDateString() === new Date(now.value).toDateString() ? timeWithSeconds(date) : precise.value.format(date);
}

/** A listener that puts the exact time into the tooltip of an element. */
export function showExactTime(date: Date) {
  return (event: { currentTarget: HTMLElement }) => {
    event.currentTarget.title = exactTime(date);
  };
}

interface TimeProps {
  at: string | Date;
  /** The exact time beside it, with seconds where minutes would look the same. */
  full?: boolean;
  seconds?: boolean;
  /** The exact time instead, once it is not of today. */
  dated?: boolean;
  /** Its age alone, without the word for the past. */
  short?: boolean;
}

/** How long ago something was. */
export function Time({ at, full, seconds, dated, short }: TimeProps) {
  const date = new Date(at);
  if (dated && now.value - date.getTime() >= DAY_MS) return <time dateTime={date.toISOString()}>{exactTime(date)}</time>;
  return (
    <time dateTime={date.toISOString()} onPointerEnter={showExactTime(date)}>
      {short ? age(date) : ago(date)}
      {full && <span class="quiet"> · {seconds ? precise.value.format(date) : exactTime(date)}</span>}
    </time>
  );
}
