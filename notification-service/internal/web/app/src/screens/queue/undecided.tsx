import type { ComponentChildren } from 'preact';

import { t } from '../../lang/queue';
import { waiting } from '../../state/desk';
import { toast } from '../../state/toasts';
import { usePoll } from '../../ui/poll';
import { explain, Fault } from '../../ui/problem';
import { href } from '../../ui/router';
import { Skeleton } from '../../ui/skeleton';

const HOUR_MS = 60 * 60_000;
/** The time between two readings of what no event reports, while nobody goes from one section to another. */
export const SELDOM_MS = 10 * 60_000;

/** The list of what officials are to decide on, read again when its number changes; and a way to decide. */
export function useUndecided<T>(read: () => Promise<T[]>, number: 'held_photos' | 'abuse_reports') {
  const found = usePoll(read, [waiting.value?.[number]], HOUR_MS);
  const decide = async (deciding: Promise<unknown>) => {
    await deciding.catch((failure: unknown) => toast(explain(failure)));
    found.refresh();
  };
  return { ...found, decide };
}

interface Props {
  of: ReturnType<typeof useUndecided<unknown>>;
  /** How many there are, in words. */
  count(many: number): string;
  none: string;
  children: ComponentChildren;
}

/** Says how much there is to decide on, above it. */
export function Undecided({ of: { value, error, refresh }, count, none, children }: Props) {
  return (
    <>
      <Fault error={error} retry={refresh} />
      {!value && !error && <Skeleton />}
      {value && value.length > 0 && (
        <p class="quiet" role="status">
          {count(value.length)}
        </p>
      )}
      {value?.length === 0 && (
        <div class="empty stack">
          <p role="status">{none}</p>
          <p>
            <a href={href('queue')}>{t('work.to-queue')}</a>
          </p>
        </div>
      )}
      {children}
    </>
  );
}
