/**
 * Checks the built site: every link, anchor and picture within it leads somewhere, and
 * no page loads anything from another server.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const site = join(dirname(fileURLToPath(import.meta.url)), '../../bin/docs');
const base = process.env.DOCS_BASE ?? '/';
const pages = readdirSync(site, { recursive: true }).filter((path) => path.endsWith('.html'));
const html = new Map(pages.map((page) => [page, readFileSync(join(site, page), 'utf8')]));
const ids = new Map([...html].map(([page, text]) => [page, new Set([...text.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id))]));
const faults = [];

/** Returns the file of the site that a path leads to, or undefined. */
function file(from, path) {
  const at = path.startsWith('/') ? path.slice(base.length) : join(dirname(from), path);
  return [at, join(at, 'index.html'), `${at}.html`].find((f) => /\.\w+$/.test(f) && existsSync(resolve(site, f)));
}

for (const [page, text] of html) {
  for (const [, name, value] of text.matchAll(/<(?:a|img|link|script)\b[^>]*?\s(href|src)="([^"]*)"/g)) {
    const address = value.replaceAll('&amp;', '&');
    if (/^(https?:)?\/\//.test(address)) {
      if (name === 'src') faults.push(`${page}: loads ${address}`);
      continue;
    }
    if (/^(mailto|data):/.test(address)) continue;
    const [path, anchor] = decodeURI(address).split('#');
    const to = path ? file(page, path) : page;
    if (!to) faults.push(`${page}: there is no ${address}`);
    else if (anchor && ids.has(to) && !ids.get(to).has(anchor)) faults.push(`${page}: ${to} has no ${anchor}`);
  }
}

if (!pages.length) faults.push('the site has no pages');
for (const fault of new Set(faults)) console.error(`docs: ${fault}`);
console.log(`docs: ${pages.length} pages in bin/docs, ${new Set(faults).size} faults`);
process.exitCode = faults.length ? 1 : 0;
