import { useEffect, useMemo } from 'preact/hooks';

import type { Report } from '../../api/client';
import { t } from '../../lang/i18n';
import { Map } from '../../map/map';
import { follow, followed } from '../../state/followed';
import { markReport, notifications } from '../../state/notifications';
import { createReport } from '../../state/report';
import { session } from '../../state/session';
import { Badge } from '../../ui/badge';
import { Icon } from '../../ui/icons';
import { Fault } from '../../ui/problem';
import { href } from '../../ui/router';
import { Time } from '../../ui/time';
import { located } from '../reports/cards';
import { StatusForm } from './status-form';
import { Timeline } from './timeline';
import { Votes } from './votes';

/** One report: what, where, its status and its history. */
export function ReportScreen({ path: [, id = ''] }: { path: string[] }) {
  const open = useMemo(() => createReport(id), [id]);
  useEffect(() => {
    void open.load();
    return open.watch();
  }, [open]);
  useSeen(id);
  const report = open.report.value;
  return (
    <article class="report">
      <a class="back" href={href('')}>
        <Icon name="back" /> {t('reports')}
      </a>
      {report ? (
        <>
          <div class="report-main">
            <Head report={report} />
            <p class="story">{report.description}</p>
            <Votes open={open} report={report} />
            {session.value?.role === 'official' && <StatusForm open={open} report={report} />}
          </div>
          <aside class="stack">
            <Timeline history={open.history.value} />
            <Where report={report} />
          </aside>
        </>
      ) : (
        <h1 tabIndex={-1} class="quiet">
          {t(open.error.value ? 'report' : 'loading')}
        </h1>
      )}
      <Fault error={open.error.value} retry={() => void open.load()} />
    </article>
  );
}

function Head({ report }: { report: Report }) {
  const follows = followed.value.includes(report.id);
  return (
    <header>
      <h1 tabIndex={-1}>{report.title}</h1>
      <p class="meta">
        <span aria-live="polite">
          <Badge status={report.status} />
        </span>
        <span>{report.category_name}</span>
        <span>{report.privacy_level === 'anonymous' ? t('report.by-nobody') : t('report.by', { name: report.reporter_name ?? '' })}</span>
        <Time at={report.created_at} full />
        {report.mine && <strong>{t('report.mine')}</strong>}
      </p>
      {session.value && !report.mine && (
        <button type="button" aria-pressed={follows} onClick={() => follow(report.id, !follows)}>
          <Icon name="star" filled={follows} /> {t(follows ? 'report.followed' : 'report.follow')}
        </button>
      )}
    </header>
  );
}

function Where({ report }: { report: Report }) {
  const points = located([report]);
  if (points.length === 0 && !report.address) return null;
  return (
    <section aria-labelledby="where">
      <h2 id="where">{t('report.where')}</h2>
      {report.address && <p>{report.address}</p>}
      {points.length > 0 && <Map label={t('map.of-report')} points={points} />}
    </section>
  );
}

/** Marks the notifications of the shown report as read. */
function useSeen(id: string): void {
  const fresh = notifications.value.filter((n) => n.report_id === id && !n.read).length;
  useEffect(() => {
    if (fresh > 0 && document.visibilityState === 'visible') markReport(id).catch(() => {});
  }, [id, fresh]);
}
