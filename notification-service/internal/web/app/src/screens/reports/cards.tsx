import { useEffect } from 'preact/hooks';

import type { Report } from '../../api/client';
import { number, t } from '../../lang/i18n';
import type { Point } from '../../map/plot';
import type { ReportList } from '../../state/list';
import { Badge } from '../../ui/badge';
import { Icon } from '../../ui/icons';
import { Fault } from '../../ui/problem';
import { href } from '../../ui/router';
import { Time } from '../../ui/time';

/** The pages of a list of reports that were loaded. */
export function Cards({ list, empty }: { list: ReportList; empty: string }) {
  const reports = list.reports.value;
  const state = list.state.value;
  useEffect(markUsable, [state]);
  return (
    <div aria-busy={state === 'loading'} class="cards-box">
      <Fault error={list.error.value} retry={() => void list.more()} />
      {reports.length === 0 && state !== 'failed' && <p class="empty">{state === 'ready' ? empty : t('loading')}</p>}
      <ul class="cards">
        {reports.map((report) => (
          <Card key={report.id} report={report} />
        ))}
      </ul>
      {list.next.value && (
        <button type="button" class="wide" onClick={() => void list.more()}>
          {t('more')}
        </button>
      )}
    </div>
  );
}

/** Marks in the browser's own timeline when the first list was drawn. */
function markUsable(): void {
  if (document.querySelector('.card') && performance.getEntriesByName('list').length === 0) performance.mark('list');
}

function Card({ report }: { report: Report }) {
  return (
    <li class="card">
      <span class="score" title={t('score')}>
        <Icon name="up" />
        <span class="hidden">{t('score')}</span> {number(report.score)}
      </span>
      <div>
        <a href={href(`reports/${report.id}`)}>{report.title}</a>
        <p class="meta">
          <Badge status={report.status} />
          <span>{report.category_name}</span>
          <Time at={report.created_at} />
          {report.mine && <span>{t('report.mine')}</span>}
          {report.mine && report.privacy_level === 'anonymous' && <span>{t('privacy.anonymous')}</span>}
        </p>
      </div>
    </li>
  );
}

/** The reports that have a position, as points of a map. */
export function located(reports: Report[]): Point[] {
  return reports.flatMap(({ id, title, status, latitude, longitude }) =>
    latitude === undefined || longitude === undefined ? [] : [{ id, label: title, status, latitude, longitude }],
  );
}
