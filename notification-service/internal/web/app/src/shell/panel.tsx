import { useState } from 'preact/hooks';

import type { Notification } from '../api/client';
import { number, t, tn } from '../lang/i18n';
import { loadOlder, mark, markAll, markReport, notifications, older, onlyOwn, setOnlyOwn, unread } from '../state/notifications';
import { isOfficial, session } from '../state/session';
import { describe } from '../ui/describe';
import { groupBy } from '../ui/group';
import { Icon } from '../ui/icons';
import { lazily } from '../ui/lazily';
import { Modal } from '../ui/modal';
import { Fault } from '../ui/problem';
import { href } from '../ui/router';
import { Time } from '../ui/time';

const OpenQuestions = lazily(async () => (await import('../dialogue/open-questions')).OpenQuestions, true);

/** The user's notifications, grouped by report, the latest first. */
export function Panel({ onClose }: { onClose(): void }) {
  const [unreadOnly, setUnreadOnly] = useState(false);
  const [error, setError] = useState<unknown>();
  const act = (work: Promise<void>) => work.then(() => setError(undefined), setError);
  const shown = notifications.value.filter((n) => !unreadOnly || !n.read);
  return (
    <Modal title={t('notifications')} drawer onClose={onClose}>
      <div class="bar">
        <label class="check">
          <input type="checkbox" checked={unreadOnly} onChange={(e) => setUnreadOnly(e.currentTarget.checked)} />
          {t('notifications.unread-only')}
        </label>
        <button type="button" disabled={unread.value === 0} onClick={() => act(markAll())}>
          <Icon name="check" /> {t('notifications.read-all')}
        </button>
      </div>
      {isOfficial() && (
        <label class="check">
          <input
            type="checkbox"
            checked={onlyOwn.value}
            onChange={(e) => {
              const only = e.currentTarget.checked;
              e.currentTarget.checked = onlyOwn.value; // until the server has it
              void act(setOnlyOwn(only));
            }}
          />
          <span>
            {t('notifications.only-own')}
            <br />
            <small class="quiet">{t('notifications.only-own-hint')}</small>
          </span>
        </label>
      )}
      {session.value?.role === 'resident' && <OpenQuestions onClose={onClose} />}
      <Fault error={error} />
      {shown.length === 0 && <p class="empty">{t(unreadOnly ? 'notifications.none-unread' : 'notifications.none')}</p>}
      <ul class="groups">
        {[...groupBy(shown, (n) => n.report_id)].map(([reportId, group]) => (
          <Group key={reportId} group={group} onClose={onClose} act={act} />
        ))}
      </ul>
      {older.value && (
        <button type="button" class="wide" onClick={() => act(loadOlder())}>
          {t('more')}
        </button>
      )}
    </Modal>
  );
}

interface GroupProps {
  group: Notification[];
  onClose(): void;
  act(work: Promise<void>): void;
}

function Group({ group, onClose, act }: GroupProps) {
  const [newest] = group;
  if (!newest) return null;
  const open = () => {
    act(markReport(newest.report_id));
    onClose();
  };
  return (
    <li class="group">
      <a href={href(`reports/${newest.report_id}`)} onClick={open}>
        {newest.report_title}
      </a>
      <ul>
        {groupVotes(group).map((events) => (
          <Line key={events[0].id} events={events} act={act} />
        ))}
      </ul>
    </li>
  );
}

/** One event, or votes that followed each other. */
type Events = [Notification, ...Notification[]];

/** An event. Votes may arrive in another order than they were cast in: the score is that after the last. */
export function describeLine(events: Events): string {
  if (events.length === 1) return describe(events[0]);
  const last = events.reduce((a, b) => (b.report_version > a.report_version ? b : a));
  return tn('event.votes', events.length, { score: number(last.score ?? 0) });
}

function Line({ events, act }: { events: Events; act: GroupProps['act'] }) {
  const [newest] = events;
  const text = describeLine(events);
  const { read } = newest;
  return (
    <li data-unread={!read} data-count={events.length}>
      <span class="what">
        {text}
        {newest.note && <q>{newest.note}</q>}
        <small>
          <Time at={newest.happened_at} />
        </small>
      </span>
      <button
        type="button"
        class="plain dot-button"
        aria-label={`${t(read ? 'notifications.mark-unread' : 'notifications.mark-read')}: ${text}`}
        aria-pressed={read}
        onClick={() =>
          act(
            mark(
              events.map((n) => n.id),
              !read,
            ),
          )
        }
      />
    </li>
  );
}

/** Puts votes on one line that followed each other and are all read, or all unread. */
export function groupVotes(group: Notification[]): Events[] {
  const lines: Events[] = [];
  for (const n of group) {
    const last = lines.at(-1);
    const [newest] = last ?? [];
    const joins = n.type === 'report.vote.received' && newest?.type === n.type && newest.read === n.read;
    if (last && joins) last.push(n);
    else lines.push([n]);
  }
  return lines;
}
