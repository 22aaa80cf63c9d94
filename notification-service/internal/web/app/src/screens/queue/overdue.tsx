import { number, t } from '../../lang/queue';

/** That a report is overdue, and how far; nothing of one that is not. */
export function Overdue({ level }: { level: number }) {
  if (level === 0) return null;
  return <strong class="overdue">{level === 1 ? t('work.overdue') : t('work.overdue.level', { level: number(level) })}</strong>;
}
