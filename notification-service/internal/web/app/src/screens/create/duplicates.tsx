import { must, reportService, type Report, type Status } from '../../api/client';
import { t } from '../../lang/report';
import { keepForSignIn } from '../../photos/store';
import { draft, type Draft } from '../../state/draft';
import { follow } from '../../state/follows';
import { handOver } from '../../state/handover';
import { metresTo, reportsNear } from '../../state/near';
import { may } from '../../state/session';
import { toast } from '../../state/toasts';
import { uniqueById } from '../../state/unique';
import { Icon } from '../../ui/icons';
import { explain } from '../../ui/problem';
import { go } from '../../ui/router';
import { Card } from '../reports/cards';

/** A report of the same category within so many metres is probably the same. */
const NEAR_M = 150;
const MAX_SHOWN = 3;

/** Open reports on the same thing, and of the same category nearby. */
export async function findNear({ position, category_id, asset }: Draft): Promise<Report[]> {
  const status: Status[] = ['pending', 'in_progress'];
  const [onIt, near] = await Promise.all([
    asset ? must(reportService.GET('/reports', { params: { query: { asset: asset.name, status, limit: MAX_SHOWN } } })) : undefined,
    position && category_id ? reportsNear(position, NEAR_M, { category: [category_id], status, limit: 20 }) : [],
  ]);
  return uniqueById([...(onIt?.reports ?? []), ...near]).slice(0, MAX_SHOWN);
}

interface Props {
  near: Report[];
  /** The reader's problem is another one. */
  onNone(): void;
}

/** Asks whether the problem is one of those that were reported: a vote helps more than another report. */
export function Duplicates({ near, onNone }: Props) {
  const { position, asset } = draft.value;
  return (
    <section class="stack" role="status" aria-label={t('duplicates')}>
      <p class="quiet">{t('duplicates.hint')}</p>
      <ul class="cards">
        {near.map((report) => (
          <Card key={report.id} report={report} {...(position && { metres: metresTo(report, position) })}>
            {asset && report.asset === asset.name && <strong>{t('duplicates.same', { name: asset.label })}</strong>}
            {report.description && <p class="excerpt">{report.description}</p>}
            {!report.mine && (
              <button type="button" class="support" onClick={() => void support(report.id)}>
                <Icon name="up" /> {t('duplicates.vote')}
              </button>
            )}
          </Card>
        ))}
      </ul>
      <button type="button" class="primary wide" onClick={onNone}>
        {t('duplicates.none')}
      </button>
    </section>
  );
}

/** Votes for a report, and follows it. What was written stays a draft. */
async function support(id: string): Promise<void> {
  if (!may('votes')) {
    handOver({ draft: draft.value, vote: { report: id, type: 'upvote' } });
    await keepForSignIn();
    return go('sign-in', { to: `reports/${id}` });
  }
  try {
    await must(reportService.POST('/reports/{id}/vote', { params: { path: { id } }, body: { vote_type: 'upvote' } }));
    // The vote counts also if following fails.
    await follow(id, true).catch(() => {});
    toast(t('duplicates.voted'));
    go(`reports/${id}`);
  } catch (error) {
    toast(explain(error));
  }
}
