import { t } from '../../lang/console';
import { Fault } from '../../ui/problem';

interface Props {
  /** Why no answer has come; absent while one is under way. */
  error?: unknown;
  retry(): void;
  of?: 'message';
}

const ROWS = 6;

/** What stands where an answer will, with the room that it takes; and why none came. */
export function Waiting({ error, retry, of }: Props) {
  if (error) return <Fault error={error} retry={retry} {...(of && { of })} />;
  return (
    <div class="skeleton" role="status" aria-label={t('loading')}>
      {Array.from({ length: ROWS }, (_, i) => (
        <span key={i} />
      ))}
    </div>
  );
}
