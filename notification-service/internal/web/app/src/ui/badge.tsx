import type { Status } from '../api/client';
import { t } from '../lang/i18n';

/** The status of a report, in colour and in words. */
export function Badge({ status }: { status: Status }) {
  return (
    <span class="badge" data-status={status}>
      {t(`status.${status}`)}
    </span>
  );
}
