import { useEffect } from 'preact/hooks';

import type { Report, VoteType } from '../../api/client';
import { number, t, tn } from '../../lang/i18n';
import { handOver } from '../../state/handover';
import { intendedVote, type OpenReport } from '../../state/report';
import { may, session } from '../../state/session';
import { useAct } from '../../ui/act';
import { Icon } from '../../ui/icons';
import { Fault } from '../../ui/problem';
import { go, route } from '../../ui/router';

const BUTTONS = { upvote: 'up', downvote: 'down' } as const;

/** The score, and the user's own vote: pressing it again withdraws it. */
export function Votes({ open, report }: { open: OpenReport; report: Report }) {
  const { busy, error, run } = useAct();
  const why = whyNot(report);
  const vote = async (type: VoteType) => {
    if (!may('votes')) {
      handOver({ vote: { report: report.id, type } });
      go('sign-in', { to: route.value.path.join('/') });
      return;
    }
    await run(() => open.vote(type));
  };
  useEffect(() => {
    // Pressed before signing in; the same vote again would withdraw it.
    const intended = intendedVote.value;
    if (intended?.report !== report.id) return;
    intendedVote.value = undefined;
    if (may('votes') && why === undefined && !report.mine && report.my_vote !== intended.type) void vote(intended.type);
  }, [report.id]);
  return (
    <section class="votes" aria-labelledby="votes">
      <h2 id="votes" class="hidden">
        {t('votes')}
      </h2>
      <p class="total">
        <output aria-live="polite">{number(report.score)}</output> <span class="quiet">{tn('score', report.score)}</span>
      </p>
      {!report.mine &&
        session.value?.role !== 'auditor' &&
        (['upvote', 'downvote'] as const).map((type) => (
          <button
            key={type}
            type="button"
            disabled={why !== undefined}
            aria-busy={busy}
            aria-pressed={report.my_vote === type}
            onClick={() => !busy && vote(type)}
          >
            <Icon name={BUTTONS[type]} /> {t(`vote.${type}`)}
          </button>
        ))}
      {why && <span class="quiet">{why}</span>}
      {!may('votes') && !report.mine && !why && <span class="quiet">{t('vote.sign-in')}</span>}
      {report.my_vote && !why && <span class="quiet">{t('vote.withdraw-hint')}</span>}
      <Fault error={error} />
    </section>
  );
}

/** Nobody votes on their own report: they see what it has, and nothing to press. */
function whyNot(report: Report): string | undefined {
  return report.closed && !report.mine ? t('problem.report-closed') : undefined;
}
