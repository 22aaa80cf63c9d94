import { useEffect, useState } from 'preact/hooks';

import { must, reportService, type Report } from '../../api/client';
import { number, t, tn } from '../../lang/report';
import { FirstPhoto } from '../../photos/first-photo';
import { draft } from '../../state/draft';
import { may } from '../../state/session';
import { follow } from '../../state/follows';
import { metresTo, reportsNear } from '../../state/near';
import { toast } from '../../state/toasts';
import { explain } from '../../ui/problem';
import { Badge } from '../../ui/badge';
import { href } from '../../ui/router';
import { Time } from '../../ui/time';

/** A report of the same category within so many metres is probably the same. */
const NEAR_M = 150;
const MAX_SHOWN = 3;

/** Open reports nearby: a vote for one of them helps more than another report. */
export function Duplicates() {
  const { position, category_id } = draft.value;
  const [near, setNear] = useState<Report[]>([]);
  useEffect(() => {
    setNear([]);
    if (!position || !category_id) return;
    let latest = true;
    reportsNear(position, NEAR_M, { category: [category_id], status: ['pending', 'in_progress'], limit: 20 }).then(
      (found) => latest && setNear(found.slice(0, MAX_SHOWN)),
      () => {},
    );
    return () => {
      latest = false;
    };
  }, [position?.latitude, position?.longitude, category_id]);
  if (near.length === 0) return <div role="status" />;
  const remove = (id: string) => setNear(near.filter((report) => report.id !== id));
  return (
    <section class="panel stack" role="status" aria-label={t('duplicates')}>
      <h3>{t('duplicates')}</h3>
      <p class="quiet">{t('duplicates.hint')}</p>
      <ul class="rows">
        {near.map((report) => (
          <Duplicate key={report.id} report={report} metres={metresTo(report, position!)} onVoted={() => remove(report.id)} />
        ))}
      </ul>
      <button type="button" onClick={() => setNear([])}>
        {t('duplicates.none')}
      </button>
    </section>
  );
}

interface DuplicateProps {
  report: Report;
  metres: number;
  onVoted(): void;
}

/** Enough of a report to decide whether it is the same problem. */
function Duplicate({ report, metres, onVoted }: DuplicateProps) {
  const voteInstead = async () => {
    const params = { path: { id: report.id } };
    try {
      await must(reportService.POST('/reports/{id}/vote', { params, body: { vote_type: 'upvote' } }));
      // The vote counts also if following fails.
      await follow(report.id, true).catch(() => {});
      toast(t('duplicates.voted'), href(`reports/${report.id}`));
      onVoted();
    } catch (error) {
      toast(explain(error));
    }
  };
  return (
    <li>
      <FirstPhoto photos={report.photos} />
      <a href={href(`reports/${report.id}`)}>{report.title}</a>
      {report.description && <p class="excerpt">{report.description}</p>}
      <span class="meta">
        <span>{t('duplicates.away', { metres: number(Math.round(metres)) })}</span>
        {report.address && <span>{report.address}</span>}
        <Badge status={report.status} />
        <span>
          {number(report.score)} {tn('score', report.score)}
        </span>
        <Time at={report.created_at} />
      </span>
      {!report.mine && may('votes') && (
        <button type="button" class="primary" onClick={voteInstead}>
          {t('duplicates.vote')}
        </button>
      )}
    </li>
  );
}
