/** Ends what a test has put on the page: its timers would read again, and be given the answers of the next test. */
import { render } from 'preact';
import { act } from 'preact/test-utils';
import { afterEach } from 'vitest';

afterEach(() =>
  act(() => {
    for (const root of document.body.children) render(null, root);
  }),
);
