import type { Status } from '../api/client';
import { number, t } from '../lang/i18n';

export const STATUSES: readonly Status[] = ['pending', 'in_progress', 'resolved', 'rejected'];

/** How far a report may be overdue: each level is another time that its target is over. */
export const LEVELS = [1, 2, 3];

/** The status of a report, in colour and in words. */
export function Badge({ status }: { status: Status }) {
  return (
    <span class="badge" data-status={status}>
      {t(`status.${status}`)}
    </span>
  );
}

/** That a report is overdue, and how far; nothing of one that is not. */
export function Overdue({ level }: { level: number }) {
  if (level === 0) return null;
  return <strong class="overdue">{level === 1 ? t('work.overdue') : t('work.overdue.level', { level: number(level) })}</strong>;
}
