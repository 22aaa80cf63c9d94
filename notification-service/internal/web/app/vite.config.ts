import { loadEnv, type Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

import { maplibre } from './maplibre.js';
import { thirdPartyNotices } from './notices.js';

// Where a stack runs, for work on the page beside it: make dev
const { CITYCONNECT_URL = 'http://127.0.0.1:8080' } = loadEnv('', '.', 'CITYCONNECT_');

/** The mixins of the sheets, by name. */
const mixins = new Map<string, never>();

/** A browser's version in the form that Lightning CSS reads. */
const version = (major: number, minor = 0) => (major << 16) | (minor << 8);

/**
 * Builds sw.js and tells it the names of what the page needs to start. The map,
 * the officials' workbench and the operators' console are not among them: who
 * is offline has no use for them. Names change with what is in the files, and
 * the version with the names.
 */
function serviceWorker(): Plugin {
  return {
    name: 'service-worker',
    apply: 'build',
    buildStart() {
      this.emitFile({ type: 'chunk', id: 'worker/worker.ts', fileName: 'sw.js' });
    },
    generateBundle: {
      // A chunk that only loads styles is taken out at the end.
      order: 'post',
      handler(_, bundle) {
        const built = Object.keys(bundle).filter(
          (name) => name.startsWith('assets/') && !/^assets\/(?:plot|console|queue|maplibre)/.test(name),
        );
        const files = ['/', '/early.js', '/icon.svg', '/manifest.webmanifest', ...built.map((name) => `/${name}`).sort()];
        const worker = bundle['sw.js'];
        if (worker?.type !== 'chunk') throw new Error('there is no sw.js');
        let version = 0;
        for (const letter of files.join()) version = (Math.imul(version, 31) + letter.charCodeAt(0)) >>> 0;
        worker.code = worker.code
          .replace(/["'`]__FILES__["'`]/, files.map((file) => JSON.stringify(file)).join())
          .replace('__VERSION__', version.toString(36));
      },
    },
  };
}

/** The client of the streams, which others install as a package; the page is built from its sources. */
const stream = new URL('../../../clients/stream/src', import.meta.url).pathname;

export default defineConfig({
  resolve: { alias: { '@cityconnect/stream': stream } },
  plugins: [maplibre(), thirdPartyNotices(), serviceWorker()],
  build: {
    outDir: '../dist',
    emptyOutDir: true,
    target: ['chrome111', 'firefox114', 'safari16.4'],
    // The policy forbids data: scripts and fonts; every asset is a file.
    assetsInlineLimit: 0,
    // Browsers that know modules know modulepreload by now.
    modulePreload: { polyfill: false },
    cssMinify: 'lightningcss',
    // The map's library is large, and loaded only where a map is seen.
    chunkSizeWarningLimit: 1_100,
  },
  // esbuild would leave light-dark() to browsers that do not know it.
  css: {
    transformer: 'lightningcss',
    lightningcss: {
      targets: { chrome: version(111), firefox: version(114), safari: version(16, 4) },
      // @mixin and @apply, which CSS does not have yet.
      customAtRules: { mixin: { prelude: '<custom-ident>', body: 'style-block' }, apply: { prelude: '<custom-ident>' } },
      visitor: {
        Rule: {
          custom: {
            mixin({ prelude, body }: { prelude: { value: string }; body: { value: never } }) {
              mixins.set(prelude.value, body.value);
              return [];
            },
            apply: ({ prelude }: { prelude: { value: string } }) => mixins.get(prelude.value),
          },
        },
      },
    },
  },
  server: {
    // Tests read the list of problems, and the reasons that the services write down.
    fs: { allow: ['.', '../../../clients/stream', '../../../../docs', '../../../../platform', '../../notifier', '../../webhook'] },
    proxy: {
      // All but the page's own files.
      '^/(?:config\\.json|(?!@|src/|node_modules/|[\\w-]+\\.\\w+(?:\\?|$))\\w)': {
        target: CITYCONNECT_URL,
        // A report has a page at the address of its data.
        bypass: ({ url, headers }) => (!url?.startsWith('/docs') && headers.accept?.includes('text/html') ? '/index.html' : undefined),
      },
    },
  },
  test: {
    environment: 'jsdom',
    // A context of its own for each file, in workers that have loaded jsdom once:
    // a quarter of the processor time of a process for each file.
    pool: 'vmThreads',
    include: ['src/**/*.test.{ts,tsx}'],
    setupFiles: ['src/testing/unmount.ts'],
    // A page that hangs ends; a busy machine does not fail a test.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // As with the tests in Go: one that passes at its second run is named as flaky.
    retry: 1,
    reporters: ['default', { onTestCaseResult: (test) => void (test.diagnostic()?.flaky && console.log(`flaky: ${test.fullName}`)) }],
    // A spy or a global of one test must not reach the next.
    restoreMocks: true,
    unstubGlobals: true,
  },
});
