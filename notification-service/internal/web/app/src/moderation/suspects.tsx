import { must, reportService, type Task } from '../api/client';
import { t, tn } from '../lang/queue';
import { t as say } from '../lang/report';
import { toast } from '../state/toasts';
import { Badge } from '../ui/badge';
import { usePoll } from '../ui/poll';
import { explain, Fault } from '../ui/problem';
import { href } from '../ui/router';
import { Skeleton } from '../ui/skeleton';
import { Time } from '../ui/time';
import { Moderation } from './moderation';

const MOST = 50;

const suspects = async () => (await must(reportService.GET('/reports/queue/abuse', { params: { query: { limit: MOST } } }))).reports;

/** The reports that residents have reported as abuse, those of most residents first. */
export function Suspects() {
  const { value, error, refresh } = usePoll(suspects);
  const dismiss = async ({ id }: Task) => {
    try {
      await must(reportService.DELETE('/reports/{id}/abuse', { params: { path: { id } } }));
    } catch (failure) {
      toast(explain(failure));
    }
    refresh();
  };
  return (
    <>
      <Fault error={error} retry={refresh} />
      {!value && !error && <Skeleton />}
      {value && value.length > 0 && (
        <p class="quiet" role="status">
          {tn('abuse.found', value.length)}
        </p>
      )}
      {value?.length === 0 && (
        <div class="empty stack">
          <p role="status">{t('abuse.none')}</p>
          <p>
            <a href={href('queue')}>{t('work.to-queue')}</a>
          </p>
        </div>
      )}
      <ul class="rows">
        {value?.map(({ report, entries }) => (
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
            <Moderation report={report} onDone={refresh} />
            <p class="bar">
              <button type="button" onClick={() => void dismiss(report)}>
                {t('abuse.dismiss')}
              </button>
            </p>
          </li>
        ))}
      </ul>
    </>
  );
}
