/**
 * The city to look at without a server: the page's own sources with src/try in the place
 * of a server, as one folder that a browser opens from a disk. From there browsers load
 * no modules, so each part is a script that SystemJS loads; and no file may be addressed
 * from the root, so that there are no addresses but relative ones.
 */
import { readFileSync } from 'node:fs';

import { defineConfig, type Plugin } from 'vite';

import { thirdPartyNotices } from './notices.js';
import page from './vite.config';

const source = (name: string) => new URL(`src/try/${name}`, import.meta.url).pathname;

const html = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>CityConnect</title>
    <link rel="icon" href="icon.svg" type="image/svg+xml" />
    <link rel="stylesheet" href="style.css" />
    <script src="system.js"></script>
    <script type="systemjs-module" src="try.js"></script>
  </head>
  <body>
    <div id="app"></div>
    <noscript>CityConnect needs JavaScript.</noscript>
  </body>
</html>
`;

/** Writes the files beside the code. */
function folder(): Plugin {
  const files = { 'system.js': 'node_modules/systemjs/dist/s.min.js', 'icon.svg': 'public/icon.svg' };
  return {
    name: 'folder',
    generateBundle() {
      this.emitFile({ type: 'asset', fileName: 'index.html', source: html });
      for (const [fileName, path] of Object.entries(files))
        // Its path leads to its licence.
        this.emitFile({ type: 'asset', fileName, originalFileName: path, source: readFileSync(path, 'utf8') });
    },
  };
}

export default defineConfig({
  base: './',
  publicDir: false,
  css: page.css!,
  plugins: [folder(), thirdPartyNotices()],
  resolve: {
    alias: [
      ...Object.entries(page.resolve!.alias!).map(([find, replacement]: [string, string]) => ({ find, replacement })),
      { find: 'preact-iso', replacement: source('router.tsx') },
      { find: 'virtual:maplibre-shared', replacement: source('no-map.ts') },
      { find: /^\.\/plot$/, replacement: source('no-map.ts') },
    ],
  },
  define: { location: 'globalThis.tryLocation', 'import.meta.env.PROD': 'false' },
  build: {
    outDir: '../../../../bin/docs/try',
    emptyOutDir: true,
    target: page.build!.target!,
    cssMinify: 'lightningcss',
    cssCodeSplit: false,
    assetsInlineLimit: 100_000,
    modulePreload: false,
    rollupOptions: {
      input: source('main.ts'),
      output: { format: 'system', entryFileNames: 'try.js', chunkFileNames: 'parts/[name]-[hash].js', assetFileNames: '[name][extname]' },
    },
  },
});
