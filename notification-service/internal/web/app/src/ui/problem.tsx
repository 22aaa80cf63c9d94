import { Failure } from '../api/client';
import { isWord, t } from '../lang/i18n';

/** What went wrong, in the reader's language. */
export function explain(error: unknown): string {
  if (!(error instanceof Failure)) return t('problem.internal');
  const key = `problem.${error.kind}`;
  if (isWord(key)) return t(key);
  return error.problem?.detail ?? error.problem?.title ?? t('problem.internal');
}

/** A failure, shown where it happened and announced to screen readers. */
export function Fault({ error, retry }: { error: unknown; retry?: () => void }) {
  if (!error) return null;
  return (
    <p class="fault" role="alert">
      {explain(error)}{' '}
      {retry && (
        <button type="button" class="link" onClick={retry}>
          {t('try-again')}
        </button>
      )}
    </p>
  );
}
