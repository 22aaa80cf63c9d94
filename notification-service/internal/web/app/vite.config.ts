import { loadEnv } from 'vite';
import { defineConfig } from 'vitest/config';

import { thirdPartyNotices } from './notices.js';

// Where a stack runs, for work on the page beside it: npx vite
const { CITYCONNECT_URL = 'http://127.0.0.1:8080' } = loadEnv('', '.', 'CITYCONNECT_');

/** A browser's version in the form that Lightning CSS reads. */
const version = (major: number, minor = 0) => (major << 16) | (minor << 8);

export default defineConfig({
  plugins: [thirdPartyNotices()],
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    target: ['chrome111', 'firefox114', 'safari16.4'],
    // The policy forbids data: scripts and fonts; every asset is a file.
    assetsInlineLimit: 0,
    // Browsers that know modules know modulepreload by now.
    modulePreload: { polyfill: false },
    cssMinify: 'lightningcss',
  },
  // esbuild would leave light-dark() to browsers that do not know it.
  css: {
    transformer: 'lightningcss',
    lightningcss: { targets: { chrome: version(111), firefox: version(114), safari: version(16, 4) } },
  },
  server: {
    // A test reads the list of problems.
    fs: { allow: ['.', '../../../../docs'] },
    proxy: Object.fromEntries(
      ['/reports', '/categories', '/admin', '/notifications', '/feed', '/session', '/dev', '/config.json'].map((path) => [
        path,
        CITYCONNECT_URL,
      ]),
    ),
  },
  test: {
    environment: 'jsdom',
    include: ['src/**/*.test.{ts,tsx}'],
    // A spy or a global of one test must not reach the next.
    restoreMocks: true,
    unstubGlobals: true,
  },
});
