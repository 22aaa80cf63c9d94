import { t } from '../../lang/console';
import { href } from '../../ui/router';

/** A link to the report that a message is about, if its body says which. */
export function ReportLink({ letter: { body } }: { letter: { body?: unknown } }) {
  const id = typeof body === 'object' && body !== null && 'report_id' in body ? body.report_id : undefined;
  return typeof id === 'string' && id !== '' ? <a href={href(`reports/${encodeURIComponent(id)}`)}>{t('report')}</a> : null;
}
