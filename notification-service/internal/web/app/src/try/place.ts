/**
 * The address of the page that is shown. A folder has one address, so the page's own is
 * in its fragment: vite.try.config.ts puts this in the place of the browser's location.
 */
const browser = window.location;
const folder = () => browser.href.split('#')[0] ?? '';
const shown = () => browser.hash.slice(1) || '/';

/** Loads the page again at another of its addresses. */
function load(address: string): void {
  history.replaceState(null, '', `#${address}`);
  browser.reload();
}

Object.assign(globalThis, {
  tryLocation: {
    get pathname() {
      return shown().split('?')[0];
    },
    get search() {
      const [, query] = shown().split('?');
      return query === undefined ? '' : `?${query}`;
    },
    /** An address after it is one that a reader of this folder can open. */
    get origin() {
      return `${folder()}#`;
    },
    get href() {
      return folder();
    },
    host: '',
    hash: '',
    assign: load,
    replace: load,
    reload: () => browser.reload(),
  },
});
