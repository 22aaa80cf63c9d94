/**
 * The documentation site: docs/ as it is, with the menu of docs/README.md, and a
 * search in the browser. Nothing is loaded from other servers.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vitepress';

import { slug } from '../slug.js';

const top = join(dirname(fileURLToPath(import.meta.url)), '../../..');
const docs = join(top, 'docs');
const repository = 'https://github.com/cityconnect/cityconnect';

/** Files that are pages of the site under another name. */
const pages = {
  'openapi/report-service.yaml': 'api/report-service.md',
  'openapi/notification-service.yaml': 'api/notification-service.md',
  'asyncapi.yaml': 'api/messages.md',
};

/** GitHub shows the README of a folder, a site its index. */
const index = (path) => path.replace(/(^|\/)README\.md$/, '$1index.md');

/**
 * Returns where a link of the page at `from`, below docs/, leads on the site. Throws
 * if it leads nowhere.
 */
function target(from, href) {
  if (/^[a-z]+:|^\/\/|^#/.test(href)) return href;
  const [, path, anchor] = /^([^#]*)(#.*)?$/.exec(decodeURI(href));
  const at = posix.join(posix.dirname(from), path);
  const file = join(docs, at);
  if (!existsSync(file)) throw new Error(`${from}: there is no ${href}`);
  const inside = !at.startsWith('..');
  const page = inside && (pages[at] ?? (at.endsWith('.md') ? index(at) : undefined));
  if (page) return posix.relative(posix.dirname(from), page).replace(/^(?!\.)/, './') + (anchor ?? '');
  const kind = statSync(file).isDirectory() ? 'tree' : 'blob';
  return `${repository}/${kind}/main/${relative(top, file)}${anchor ?? ''}`;
}

/** Leads the links of each page where the site has what they name. */
function links(md) {
  md.core.ruler.push('links', ({ tokens, env }) => {
    for (const { children } of tokens) {
      for (const token of children ?? []) {
        if (token.type === 'link_open') token.attrSet('href', target(env.relativePath, token.attrGet('href')));
      }
    }
  });
  const fence = md.renderer.rules.fence;
  md.renderer.rules.fence = (tokens, i, ...rest) =>
    tokens[i].info.trim() === 'mermaid'
      ? `<Diagram code="${encodeURIComponent(tokens[i].content)}" />`
      : fence(tokens, i, ...rest);
}

/**
 * Returns the menu: the links of a list of documents, by its headings. Those that leave
 * docs/ lead to the repository.
 */
function menu(list) {
  const groups = [];
  for (const line of readFileSync(join(docs, list), 'utf8').split('\n')) {
    if (/^#+ /.test(line)) groups.push({ text: line.replace(/^#+ /, ''), collapsed: false, items: [] });
    if (!line.startsWith('| ')) continue;
    for (const [, text, href] of line.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)) {
      const link = target(list, href);
      groups.at(-1).items.push({
        text: text[0].toUpperCase() + text.slice(1),
        link: link.startsWith('http') ? link : '/' + posix.join(posix.dirname(list), link).replace(/(index)?\.md/, ''),
      });
    }
  }
  return groups.filter(({ items }) => items.length > 0);
}

/** The city to look at is beside the site, and not a page of it. */
const city = (text) => ({ text, link: '/try/index.html', target: '_self' });

const words = {
  button: { buttonText: 'Cari', buttonAriaLabel: 'Cari' },
  modal: {
    displayDetails: 'Tampilkan rincian',
    resetButtonTitle: 'Kosongkan',
    backButtonTitle: 'Tutup',
    noResultsText: 'Tidak ada hasil untuk',
    footer: { selectText: 'pilih', navigateText: 'pindah', closeText: 'tutup' },
  },
};

/** Pages are outside of the folder that has the packages: what renders them finds Vue here. */
const vue = {
  name: 'vue-of-this-folder',
  enforce: 'pre',
  resolveId: (source, _, { ssr }) => (ssr && /^vue(\/server-renderer)?$/.test(source) ? { id: source, external: true } : null),
};

export default defineConfig({
  srcDir: relative(join(top, 'scripts/docs-site'), docs),
  outDir: join(top, 'bin/docs'),
  cacheDir: join(top, '.stack/docs-site'),
  base: process.env.DOCS_BASE ?? '/',
  title: 'CityConnect',
  description: 'Residents report what is broken in their city, officials follow it up, and both see every change live.',
  rewrites: Object.fromEntries(
    readdirSync(docs, { recursive: true })
      .filter((path) => path.endsWith('README.md'))
      .map((path) => [path, index(path)]),
  ),
  lastUpdated: false,
  ignoreDeadLinks: 'localhostLinks', // of a stack on the reader's machine
  markdown: {
    html: false, // placeholders such as <host> are text
    attrs: { disable: true }, // and so are those in braces
    anchor: { slugify: slug },
    config: links,
  },
  vite: { plugins: [vue], build: { chunkSizeWarningLimit: 4000 }, server: { fs: { allow: [top] } } },
  locales: {
    root: { label: 'English', lang: 'en' },
    id: {
      label: 'Bahasa Indonesia',
      lang: 'id',
      description: 'Warga melaporkan kerusakan di kotanya, petugas menindaklanjutinya, dan setiap perubahan langsung terlihat.',
      themeConfig: {
        nav: [city('Coba'), { text: 'Daftar', link: '/id/' }],
        sidebar: menu('id/README.md'),
        outline: { level: [2, 3], label: 'Di halaman ini' },
        docFooter: { prev: 'Sebelumnya', next: 'Berikutnya' },
        darkModeSwitchLabel: 'Tampilan',
        sidebarMenuLabel: 'Menu',
        returnToTopLabel: 'Ke atas',
        langMenuLabel: 'Bahasa',
      },
    },
  },
  themeConfig: {
    i18nRouting: false, // most pages are in one language
    nav: [
      city('Try it'),
      { text: 'Residents', link: '/residents' },
      { text: 'Officials', link: '/officials' },
      { text: 'Operators', link: '/operators' },
      { text: 'API', link: '/api/report-service' },
    ],
    sidebar: menu('README.md'),
    outline: { level: [2, 3] },
    search: {
      provider: 'local',
      options: {
        locales: { id: { translations: words } },
        // Guides and how-tos come before fields of the APIs, and reasons.
        miniSearch: { searchOptions: { boostDocument: (id) => (/\/(api|decisions)\//.test(id) ? 0.4 : 1) } },
      },
    },
    socialLinks: [{ icon: 'github', link: repository }],
  },
});
