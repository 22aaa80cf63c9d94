import { t } from '../lang/create';

/** The thing that a report is about, and a way back. */
export function About({ label, onForget }: { label: string; onForget(): void }) {
  return (
    <p class="bar spread" role="status">
      ✓ {t('asset.at', { name: label })}
      <button type="button" class="link" onClick={onForget}>
        {t('asset.forget')}
      </button>
    </p>
  );
}
