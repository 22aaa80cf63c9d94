/**
 * The address that is shown, and how it changes. preact-iso follows links and
 * the browser's history; here is what it does not do.
 *
 * Each entry of the browser's history has a key in its state. Who comes to an
 * entry without one comes to a new page; to one with a key, the reader went
 * back or forward, and finds the page as it was left.
 */
import { batch, computed, signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect } from 'preact/hooks';
import { LocationProvider, useLocation } from 'preact-iso';

import { readingPosition, type ReadingPosition } from './scroll';

/** The first parts of the page's addresses; links to others leave the page. web.go has the same. */
const PAGES = /^\/(?:$|\?|(?:reports|mine|settings|new|filed|queue|ops|j|sign-in)(?:$|[/?]))/;

interface Entry {
  key: string;
  /** The address that led here. */
  from?: string;
}

const positions = new Map<string, ReadingPosition>();
let keys = 0;

// A reload gives entries new keys: what was kept of the old ones is gone.
const load = Date.now().toString(36);
let entry = enter();

const shown = signal(location.pathname + location.search);
/** Where the reader was on this page before; absent on a new one. */
export const returnedTo = signal<ReadingPosition | undefined>();

// The page scrolls once it has drawn what is to be seen there.
history.scrollRestoration = 'manual';

/** Changes the address; set while the page is mounted. */
let navigate: (address: string, replace?: boolean) => void = (address) => location.assign(address);

/** Everything that shows addresses goes inside. */
export function Router({ children }: { children: ComponentChildren }) {
  return (
    <LocationProvider scope={PAGES}>
      <Follow />
      {children}
    </LocationProvider>
  );
}

/** Passes on what preact-iso says, so that modules other than components can use it. */
function Follow() {
  const { url, route } = useLocation();
  useLayoutEffect(() => {
    navigate = route;
  }, [route]);
  useLayoutEffect(() => arrive(), [url]);
  return null;
}

/** Shows the present address. What was shown until now is still there, so that its place can be kept. */
function arrive(): void {
  const address = location.pathname + location.search;
  if (address === shown.value) return;
  const before = entry;
  const position = readingPosition();
  entry = enter(shown.value);
  if (entry.key !== before.key) positions.set(before.key, position);
  batch(() => {
    shown.value = address;
    returnedTo.value = positions.get(entry.key);
  });
}

/** The entry of the history that is shown now. */
function enter(from?: string): Entry {
  const known = history.state as Entry | null;
  if (known?.key.startsWith(load)) return known;
  const fresh: Entry = { key: `${load}.${++keys}`, ...(from !== undefined && { from }) };
  history.replaceState(fresh, '');
  return fresh;
}

/** The address in parts: /reports/1?q=a is path ['reports', '1'] and query q=a. */
export const route = computed(() => parse(shown.value));

function parse(address: string) {
  const [path = '', query = ''] = address.split('?');
  return { path: path.split('/').filter(Boolean), query: new URLSearchParams(query) };
}

/** The shown address, without the slash before it. */
export function here(): string {
  return shown.value.slice(1);
}

/** An address of the page. Two slashes at its beginning would name another host. */
export function href(path: string, query: Record<string, string> = {}): string {
  const search = new URLSearchParams(query).toString();
  return `/${path.replace(/^[/\\]+/, '')}${search && `?${search}`}`;
}

export function go(path: string, query: Record<string, string> = {}): void {
  navigate(href(path, query));
}

/** Goes back to a page if it led here, which then is as it was left; otherwise to a new one. */
export function goBackTo(path: string): void {
  if (entry.from !== undefined && parse(entry.from).path.join('/') === path) history.back();
  else go(path);
}

/** Changes the query in place: a filter is not a step in the history. */
export function setQuery(change: Record<string, string>): void {
  const { path, query } = route.value;
  const next = Object.fromEntries([...query, ...Object.entries(change)].filter(([, value]) => value !== ''));
  for (const [name, value] of Object.entries(change)) if (value === '') delete next[name];
  navigate(href(path.join('/'), next), true);
  // It stays the same entry of the history.
  history.replaceState(entry, '');
}
