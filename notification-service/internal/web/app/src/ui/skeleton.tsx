import { t } from '../lang/i18n';

const ROWS = 6;

/** Stands where rows will, with about the room that they take. */
export function Skeleton() {
  return (
    <div class="skeleton" role="status" aria-label={t('loading')}>
      {Array.from({ length: ROWS }, (_, i) => (
        <span key={i} />
      ))}
    </div>
  );
}
