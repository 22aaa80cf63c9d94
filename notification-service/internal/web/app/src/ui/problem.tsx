import { Failure } from '../api/client';
import { isWord, t } from '../lang/i18n';

/** The failure, in the reader's language; of is the thing that was requested. */
export function explain(error: unknown, of?: 'message'): string {
  if (!(error instanceof Failure)) return t('problem.internal');
  if (of && error.kind === 'not-found') return t(`problem.not-found.${of}`);
  const key = `problem.${error.kind}`;
  if (isWord(key)) return t(key);
  return error.problem?.detail ?? error.problem?.title ?? t('problem.internal');
}

/** A failure, shown where it happened and announced to screen readers. */
export function Fault({ error, retry, of }: { error: unknown; retry?: () => void; of?: 'message' }) {
  if (!error) return null;
  return (
    <p class="fault" role="alert">
      {explain(error, of)}{' '}
      {retry && (
        <button type="button" class="link" onClick={retry}>
          {t('try-again')}
        </button>
      )}
    </p>
  );
}
