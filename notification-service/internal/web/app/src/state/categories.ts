/** The categories of reports, in the city's words and the reader's language. */
import { computed, effect, signal, untracked } from '@preact/signals';

import { must, reportService, type Category } from '../api/client';
import { debounce } from '../live/batch';
import { preferences } from './preferences';

/** All categories in the city's order, and behind them those that only older reports have; empty until they are known. */
export const categories = signal<Category[]>([]);

/** Those that the city uses now. */
export const inUse = computed(() => categories.value.filter(({ retired }) => !retired));

/** Those that the city offers where the problem is: a signpost may stand there alone. */
export const offered = computed(() => atPlace.value ?? inUse.value);
const atPlace = signal<Category[] | undefined>();

const byId = computed(() => new Map(categories.value.map((category) => [category.id, category])));

/** How far apart the list is asked for where nothing says that it has changed. */
const APART_MS = 2_000;

/** Counts requests: only the answer to the latest is shown, which is that in the chosen language. */
let requests = 0;
let askedAt = 0;
/** Of the answer that is shown. The browser keeps the answer, and sends the tag along by itself. */
let shown: string | null = null;

declare global {
  /** The answers that public/early.js requested. */
  var earlyCategories: Promise<Response | undefined> | undefined;
}

export async function loadCategories(): Promise<void> {
  const request = ++requests;
  askedAt = Date.now();
  const asked = globalThis.earlyCategories;
  globalThis.earlyCategories = undefined;
  const early = await asked;
  const answer = early?.ok ? await read(early) : await ask();
  if (request !== requests) return;
  if (answer.tag && answer.tag === shown) return;
  shown = answer.tag;
  categories.value = answer.categories;
}

async function read(response: Response): Promise<{ tag: string | null; categories: Category[] }> {
  const { categories } = (await response.json()) as { categories: Category[] };
  return { tag: response.headers.get('ETag'), categories };
}

async function ask() {
  const chosen = preferences.language.value;
  let tag: string | null = null;
  const answer = reportService.GET('/categories', {
    params: { query: { include: 'retired' } },
    ...(chosen && { headers: { 'Accept-Language': chosen } }),
  });
  const { categories } = await must(
    answer.then((got) => {
      tag = got.response.headers.get('ETag');
      return got;
    }),
  );
  return { tag, categories };
}

/** Reads what the city offers at a place; without one, or without an answer, it is what it offers everywhere. */
export async function loadOffered(at: { latitude: number; longitude: number } | undefined): Promise<void> {
  const chosen = preferences.language.value;
  const found =
    at && must(reportService.GET('/categories', { params: { query: at }, ...(chosen && { headers: { 'Accept-Language': chosen } }) }));
  atPlace.value = await found?.then(
    ({ categories }) => categories,
    () => undefined,
  );
}

/** Asks whether the list has changed, unless that was asked just now. */
export function refreshCategories(): void {
  if (Date.now() - askedAt < APART_MS || document.visibilityState === 'hidden') return;
  loadCategories().catch(() => {}); // what is shown stays
}

/** Every open page meets a new category at once. */
const refreshSoon = debounce(() => void loadCategories().catch(() => {}), APART_MS);

/**
 * Keeps the names those of the chosen language, and asks whether they have changed
 * with each place that is gone to and whenever the page is looked at again.
 */
export function keepCategories(place: () => string): void {
  whenChanged(
    () => preferences.language.value,
    () => loadCategories().catch(() => {}),
  );
  whenChanged(place, refreshCategories);
  document.addEventListener('visibilitychange', refreshCategories);
}

function whenChanged(get: () => string, act: () => unknown): void {
  let before = get();
  effect(() => {
    const now = get();
    if (now === before) return;
    before = now;
    untracked(act);
  });
}

/** Categories that were asked for because a report had one that is not in the list. */
const missed = new Set<number>();

/** A report's category, once the list is known. */
export const categoryOf = ({ category_id }: { category_id: number }) => byId.value.get(category_id);

/** The present name of a report's category. A report that is newer than the list brings a name of its own. */
export function categoryName({ category_id: id, category_name: name }: { category_id: number; category_name: string }): string {
  const known = categoryOf({ category_id: id });
  if (!known && categories.value.length > 0 && !missed.has(id)) {
    missed.add(id);
    refreshSoon();
  }
  return known?.name ?? name;
}
