import { Component, type ComponentChildren } from 'preact';

import { t } from '../lang/i18n';

/** Shows in the place of a part that threw an error what happened and the ways on. The part is drawn again only when the reader asks for it. */
export class Boundary extends Component<{ children: ComponentChildren }, { failed: boolean }> {
  override state = { failed: false };

  override componentDidCatch(error: unknown): void {
    reportError(error);
    this.setState({ failed: true });
  }

  override render({ children }: { children: ComponentChildren }) {
    if (!this.state.failed) return children;
    return (
      <section class="stack">
        <h1 tabIndex={-1}>{t('broken')}</h1>
        <p role="alert">{t('broken.text')}</p>
        <p class="bar">
          <button type="button" class="primary" onClick={() => this.setState({ failed: false })}>
            {t('try-again')}
          </button>
          <a href="/">{t('reports')}</a>
        </p>
      </section>
    );
  }
}
