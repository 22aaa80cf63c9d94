// Run with the page's vitest: scripts/page.sh test
export default {
  test: {
    include: ['src/**/*.test.ts'],
    pool: 'threads',
    // A busy machine is no fault of a test.
    testTimeout: 120_000,
    restoreMocks: true,
    unstubGlobals: true,
  },
};
