/**
 * The page's words. Those of the screens that everybody sees are here. The
 * console, the workbench and the settings have words of their own, which come
 * with their code: a module such as console.ts has what is here, and those.
 *
 * English is there with the code that says it; other languages come when chosen: ours
 * as a part of the page, and those of the city from its server.
 */
import { batch, computed, signal } from '@preact/signals';

import { config } from '../state/config';
import { preferences } from '../state/preferences';
import en from './page.en.json';

/** The plural forms that Intl.PluralRules chooses from in each language: words that differ by number have each of them. */
export interface Forms {
  en: 'one' | 'other';
  id: 'other';
}

/** Our languages by their own names. */
const ours: Record<string, string> = { en: en['language.name'], id: 'Bahasa Indonesia' } satisfies Record<keyof Forms, string>;

/** Every language that the page has here by its own name, with those that the city has words in. */
export const languages = (): Record<string, string> => ({ ...ours, ...config.city?.words });

/** Words that differ by number, as `key.one` and `key.other` in English. */
export type Counted<Key extends string, All = Key> = Key extends `${infer Stem}.one` ? (`${Stem}.other` extends All ? Stem : never) : never;

/** The same words in another language, with the forms that it has. */
type Translated<Key extends string, Form extends string> = Record<
  Exclude<Key, `${Counted<Key>}.${Forms['en']}`> | `${Counted<Key>}.${Form}`,
  string
>;

type Values = Record<string, string | number>;

interface Says<Key extends string> {
  /** The words for key, with {names} filled in from values. */
  t: (key: Key, values?: Values) => string;
  /** The words for a number of things. */
  tn: (stem: Counted<Key>, count: number, values?: Values) => string;
  /** Whether there are words for key: for keys that the server makes. */
  isWord: (key: string) => key is Key;
}

/** How to get words in each language but English. */
type Others<Key extends string> = {
  [Tag in Exclude<keyof Forms, 'en'>]: () => Promise<{ default: Translated<Key, Forms[Tag]> }>;
};

/** Gets words in a language. */
type Part = (tag: string) => Promise<Record<string, string>>;

const parts: Part[] = [];

function addPart<Key extends string>(name: string, english: Record<Key, string>, others: Others<Key>): Part {
  const loads: Partial<Record<string, () => Promise<{ default: Record<string, string> }>>> = others;
  const part: Part = async (tag) => {
    if (tag in ours) return (await loads[tag]?.())?.default ?? english;
    const response = await fetch(`/words/${name}.${tag}.json`);
    return response.ok ? ((await response.json()) as Record<string, string>) : english;
  };
  parts.push(part);
  return part;
}

addPart('page', en, { id: () => import('./page.id.json') });

const words = signal<Record<string, string>>(en);
export const language = signal('en');

/** Old systems call Indonesian by its former code. */
function codeOf(tag: string): string {
  const code = tag.toLowerCase().split(/[-_]/)[0] ?? '';
  return code === 'in' ? 'id' : code;
}

/** The chosen language, or else the first of the browser's that we have, or of the city's. */
export function preferredLanguage(): string {
  const wanted = [preferences.language.value, ...navigator.languages.map(codeOf), ...(config.city?.languages ?? [])];
  return wanted.find((tag) => tag && tag in languages()) ?? 'en';
}

export async function setLanguage(tag: string): Promise<void> {
  let all: Record<string, string> = {};
  // A part that is added while this runs comes last and is included.
  for (const part of parts) all = { ...all, ...(await part(tag)) };
  batch(() => {
    words.value = all;
    language.value = tag;
  });
  document.documentElement.lang = tag;
  document.documentElement.dir = say('dir');
}

/**
 * Adds the words of a part of the page, and resolves once they are there in the
 * chosen language: before anything of that part is drawn.
 */
export async function withWords<Key extends string>(
  name: string,
  english: Record<Key, string>,
  others: NoInfer<Others<Key>>,
): Promise<Says<keyof typeof en | Key>> {
  const part = addPart(name, english, others);
  for (let tag = ''; tag !== language.value;) {
    tag = language.value;
    const more = await part(tag).catch(() => english); // better than no screen
    if (tag === language.value) words.value = { ...words.value, ...more };
  }
  return says;
}

function say(key: string, values: Values = {}): string {
  return (words.value[key] ?? key).replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ''));
}

/** Made once a language: making one takes much longer than using it. */
const plurals = computed(() => new Intl.PluralRules(language.value));
const numbers = computed(() => new Intl.NumberFormat(language.value));

function sayCount(stem: string, count: number, values: Values = {}): string {
  return say(`${stem}.${plurals.value.select(count)}`, { count: number(count), ...values });
}

export function number(value: number): string {
  return numbers.value.format(value);
}

const says = { t: say, tn: sayCount, isWord: (key: string): key is never => Object.hasOwn(words.value, key) };

export type Word = keyof typeof en;
export const { t, tn, isWord }: Says<Word> = says;
