import { defineConfig, loadEnv } from 'vite';

// Where a stack runs, for work on the page beside it: npx vite
const { CITYCONNECT_URL = 'http://127.0.0.1:8080' } = loadEnv('', '.', 'CITYCONNECT_');

export default defineConfig({
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    // The policy forbids data: scripts and fonts; every asset is a file.
    assetsInlineLimit: 0,
    // Browsers that know modules know modulepreload by now.
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: Object.fromEntries(
      ['/reports', '/categories', '/admin', '/notifications', '/feed', '/session', '/dev', '/config.json'].map((path) => [
        path,
        CITYCONNECT_URL,
      ]),
    ),
  },
});
