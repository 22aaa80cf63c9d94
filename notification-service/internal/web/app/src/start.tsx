import { render } from 'preact';

import { t } from './lang/i18n';
import { cityName } from './state/config';
import { Fault } from './ui/problem';

const RETRY_MS = { first: 2_000, max: 30_000 };

/** Calls load until it succeeds. Until then root shows why there is no page yet. */
export async function loadPage(load: () => Promise<unknown>, root: HTMLElement): Promise<void> {
  for (let delay = RETRY_MS.first; ; delay = Math.min(delay * 2, RETRY_MS.max)) {
    try {
      await load();
      render(null, root);
      return;
    } catch (error) {
      await new Promise<void>((retry) => {
        render(<NotStarted error={error} onRetry={retry} />, root);
        // At random, because a whole city may be waiting.
        setTimeout(retry, delay * (1 + Math.random()));
      });
    }
  }
}

function NotStarted({ error, onRetry }: { error: unknown; onRetry(): void }) {
  return (
    <main class="not-started">
      <h1>{cityName()}</h1>
      <Fault error={error} retry={onRetry} />
      <p class="quiet">{t('start.retries')}</p>
    </main>
  );
}
