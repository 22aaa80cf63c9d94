/** The page's words. English is always there; others come when chosen. */
import { computed, signal } from '@preact/signals';

import { preferences } from '../state/preferences';
import en from './en.json';

export type Words = Record<keyof typeof en, string>;
export type Word = keyof typeof en;
/** Words that differ by number, as `key.one` and `key.other`. */
export type Counted = Word extends infer W ? (W extends `${infer Stem}.other` ? Stem : never) : never;

/** Every language by its own name, with how to get its words. */
export const languages: Record<string, { name: string; load: () => Promise<Words> }> = {
  en: { name: 'English', load: async () => en },
  id: { name: 'Bahasa Indonesia', load: async () => (await import('./id.json')).default satisfies Words },
};

const words = signal<Words>(en);
export const language = signal('en');

/** The chosen language, or else the first of the browser's that we have. */
export function preferredLanguage(): string {
  const wanted = [preferences.language.value, ...navigator.languages.map((tag) => tag.split('-')[0])];
  return wanted.find((tag) => tag && tag in languages) ?? 'en';
}

export async function setLanguage(tag: string): Promise<void> {
  words.value = await (languages[tag] ?? languages.en!).load();
  language.value = tag;
  document.documentElement.lang = tag;
}

type Values = Record<string, string | number>;

/** The words for key, with {names} filled in from values. */
export function t(key: Word, values: Values = {}): string {
  return words.value[key].replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ''));
}

/** Made once a language: making one takes much longer than using it. */
const plurals = computed(() => new Intl.PluralRules(language.value));
const numbers = computed(() => new Intl.NumberFormat(language.value));

/** The words for a number of things. */
export function tn(stem: Counted, count: number, values: Values = {}): string {
  const rule = plurals.value.select(count) === 'one' ? 'one' : 'other';
  return t(`${stem}.${rule}` as Word, { count: number(count), ...values });
}

/** Whether there are words for key: for keys that the server makes. */
export function isWord(key: string): key is Word {
  return key in en;
}

export function number(value: number): string {
  return numbers.value.format(value);
}
