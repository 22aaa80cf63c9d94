import { must, reportService, type Task } from '../api/client';
import { t, tn } from '../lang/queue';
import { t as say } from '../lang/report';
import { Undecided, useUndecided } from '../screens/queue/undecided';
import { Badge } from '../ui/badge';
import { href } from '../ui/router';
import { Time } from '../ui/time';
import { Moderation } from './moderation';

const MOST = 50;

const suspects = async () => (await must(reportService.GET('/reports/queue/abuse', { params: { query: { limit: MOST } } }))).reports;

/** The reports that residents have reported as abuse, those of most residents first. */
export function Suspects() {
  const found = useUndecided(suspects, 'abuse_reports');
  const dismiss = ({ id }: Task) => found.decide(must(reportService.DELETE('/reports/{id}/abuse', { params: { path: { id } } })));
  return (
    <Undecided of={found} count={(many) => tn('abuse.found', many)} none={t('abuse.none')}>
      <ul class="rows">
        {found.value?.map(({ report, entries }) => (
          <li key={report.id} class="stack">
            <a href={href('queue', { status: 'all', report: report.id })}>{report.title}</a>
            <span class="meta">
              <Badge status={report.status} />
              <span>{tn('abuse.times', report.abuse_reports)}</span>
            </span>
            <ul class="acts">
              {entries.map((entry) => (
                <li key={entry.at}>
                  <strong>{say(`abuse.reason.${entry.reason}`)}</strong> <Time at={entry.at} />
                  {entry.text && <p class="said">{entry.text}</p>}
                </li>
              ))}
            </ul>
            <Moderation report={report} onDone={found.refresh} />
            <p class="bar">
              <button type="button" onClick={() => void dismiss(report)}>
                {t('abuse.dismiss')}
              </button>
            </p>
          </li>
        ))}
      </ul>
    </Undecided>
  );
}
