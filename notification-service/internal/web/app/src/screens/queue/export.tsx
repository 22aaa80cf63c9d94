import { useState } from 'preact/hooks';

import { must, reportService } from '../../api/client';
import { t } from '../../lang/queue';
import { queryOf, type QueueFilters } from '../../state/filters';
import { toast } from '../../state/toasts';
import { explain } from '../../ui/problem';
import { save } from '../../ui/save';

/** Spreadsheets expect a semicolon where a decimal number has a comma. */
const separator = () => ((1.5).toLocaleString(navigator.language).includes(',') ? 'semicolon' : 'comma');

/** Saves all that the filters show as CSV. It is fetched whole first: half of a file says nothing of the rest. */
export function ExportButton({ filters }: { filters: QueueFilters }) {
  const [busy, setBusy] = useState(false);
  const fetchAll = async () => {
    setBusy(true);
    try {
      const asked = {
        params: { query: { ...queryOf(filters), separator: separator() } },
        parseAs: 'blob',
        headers: { Accept: 'text/csv' },
      } as const;
      save(await must(reportService.GET('/reports/export', asked)), 'reports', 'csv');
    } catch (failure) {
      toast(explain(failure));
    }
    setBusy(false);
  };
  return (
    <button type="button" class="export" aria-busy={busy} disabled={busy} onClick={() => void fetchAll()}>
      {t('work.export')}
    </button>
  );
}
