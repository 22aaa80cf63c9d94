/** Addresses are in the hash, so that the server has one file for all of them. */
import { computed, signal } from '@preact/signals';

const hash = signal(location.hash);
window.addEventListener('hashchange', () => (hash.value = location.hash));

/** The address in parts: #/reports/1?q=a is path ['reports', '1'] and query q=a. */
export const route = computed(() => {
  const [path = '', query = ''] = hash.value.replace(/^#\/?/, '').split('?');
  return { path: path.split('/').filter(Boolean), query: new URLSearchParams(query) };
});

export function href(path: string, query: Record<string, string> = {}): string {
  const search = new URLSearchParams(query).toString();
  return `#/${path}${search && `?${search}`}`;
}

export function go(path: string): void {
  location.hash = href(path);
}

/** Changes the query in place: a filter is not a step in the history. */
export function setQuery(change: Record<string, string>): void {
  const { path, query } = route.value;
  const next = Object.fromEntries([...query, ...Object.entries(change)].filter(([, value]) => value !== ''));
  for (const [name, value] of Object.entries(change)) if (value === '') delete next[name];
  history.replaceState(history.state, '', href(path.join('/'), next));
  hash.value = location.hash;
}
