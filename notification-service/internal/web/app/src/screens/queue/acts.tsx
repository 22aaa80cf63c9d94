import type { Act } from '../../api/client';
import { t, type Word } from '../../lang/queue';
import { session } from '../../state/session';
import { href } from '../../ui/router';
import { Time } from '../../ui/time';

/** The readers of an act's text, besides officials. */
const READERS: Partial<Record<Act['action'], Word>> = {
  move: 'work.for-all',
  reply: 'work.for-all',
  correct: 'work.for-all',
  keep: 'work.for-all',
  hide: 'work.for-reporter',
  hide_comment: 'work.for-author',
};

/** The acts on a report, the latest first. A note that only officials read looks unlike one that everyone does. */
export function Acts({ acts }: { acts: Act[] }) {
  if (acts.length === 0) return null;
  return (
    <section aria-labelledby="acts">
      <h3 id="acts">{t('work.acts')}</h3>
      <ol class="acts">
        {acts.toReversed().map((act) => (
          <li
            key={act.at + act.action}
            class={act.text && !['move', 'reply', 'correct', 'keep'].includes(act.action) ? 'internal' : undefined}
          >
            {!['overdue', 'expire', 'firm_ended'].includes(act.action) && (
              <strong>{act.by.id === session.value?.sub ? t('audit.you') : act.by.id === 'system' ? t('acts.system') : act.by.name}</strong>
            )}{' '}
            <What act={act} />
            <small class="quiet">
              <Time at={act.at} full />
            </small>
            {act.text && (
              <p class="said">
                <small>{t(READERS[act.action] ?? 'work.internal')}</small> {act.text}
              </p>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

function What({ act }: { act: Act }) {
  switch (act.action) {
    case 'move':
      return <>{t('work.did.move', { status: t(`status.${act.status ?? 'pending'}`) })}</>;
    case 'assign':
      return <>{t('work.did.assign', { to: [act.assignee?.name, act.department_name].filter(Boolean).join(' · ') || t('work.nobody') })}</>;
    case 'duplicate':
      return <a href={href('queue', { status: 'all', report: act.duplicate_of ?? '' })}>{t('work.did.duplicate')}</a>;
    case 'forward':
      return <>{t('work.did.forward', { to: act.department_name ?? '' })}</>;
    case 'reply':
    case 'correct':
    case 'note':
    case 'external_ref':
    case 'firm':
    case 'firm_accepted':
    case 'firm_done':
    case 'firm_cannot':
    case 'firm_ended':
    case 'no_duplicate':
    case 'wait':
    case 'no_wait':
    case 'overdue':
    case 'keep':
    case 'ask':
    case 'withdraw_question':
    case 'expire':
    case 'add_photo':
    case 'show_photo':
    case 'remove_photo':
    case 'redact_photo':
    case 'hide':
    case 'unhide':
    case 'redact':
    case 'dismiss_abuse':
    case 'restrict':
    case 'publish':
    case 'hide_comment':
    case 'show_comment':
      return <>{t(`work.did.${act.action}`)}</>;
  }
}
