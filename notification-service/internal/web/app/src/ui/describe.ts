import type { FeedEvent, Notification } from '../api/client';
import { language, number, t, tn } from '../lang/i18n';
import { categoryName } from '../state/categories';
import { config } from '../state/config';

/** The event of a report, in a few words. */
export function describe(event: Notification | FeedEvent): string {
  switch (event.type) {
    case 'report.created':
      return event.category_name ? t('event.created-in', { category: categoryOf(event) }) : t('event.created');
    case 'report.status.updated':
      if (event.reply) return t('event.reply');
      return t('verdict_until' in event && event.verdict_until ? 'event.is-fixed' : 'event.status', {
        status: t(`status.${event.status ?? 'pending'}`),
      });
    case 'report.vote.received':
      return tn(event.vote_type === 'downvote' ? 'event.downvote' : 'event.upvote', event.score ?? 0, { score: number(event.score ?? 0) });
    case 'report.moderated':
      if (event.action === 'hidden' && event.note) return t('event.hidden-for', { reason: event.note });
      return event.action === 'private' ? t('private') : t(`event.moderated.${event.action ?? 'hidden'}`);
    case 'report.corrected': {
      if (event.by_reporter) return t('event.corrected.own');
      if (!event.previous_category_id) return t('event.corrected.place');
      const words = { category: categoryOf(event) };
      return t(event.place_moved ? 'event.corrected.both' : 'event.corrected.category', words);
    }
    case 'report.disputed':
      return t(event.retracted ? 'event.undisputed' : 'event.disputed');
    case 'report.question.asked':
      return t('event.question');
    case 'report.question.reminded':
      return t('event.question-reminded');
    case 'report.answered':
      return t('event.answered');
    case 'report.question.expired':
      return t('event.question-expired');
    case 'report.commented':
      return t('event.commented');
    case 'report.overdue':
      return t(event.overdue_level && event.overdue_level > 1 ? 'event.overdue-more' : 'event.overdue', {
        category: categoryOf(event),
        level: number(event.overdue_level ?? 1),
      });
    case 'report.photo.ready':
      return t('event.photo-ready');
    case 'report.photo.refused':
      return t('event.photo-refused', { reason: t(`photo-reason.${event.reason ?? 'failed'}`) });
  }
}

/**
 * The name of the category. Messages have its name in the first of the city's languages:
 * readers of that language see it as it was written, all others the present name in theirs.
 */
function categoryOf({ category_id: id, category_name: name = '' }: Notification | FeedEvent): string {
  if (!id || language.value === (config.city?.languages[0] ?? 'en')) return name;
  return categoryName({ category_id: id, category_name: name });
}
