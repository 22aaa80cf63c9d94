import { useState } from 'preact/hooks';

import type { Notification } from '../api/client';
import { t } from '../lang/i18n';
import { loadOlder, mark, markAll, markReport, notifications, older, unread } from '../state/notifications';
import { describe } from '../ui/describe';
import { Icon } from '../ui/icons';
import { Modal } from '../ui/modal';
import { Fault } from '../ui/problem';
import { href } from '../ui/router';
import { Time } from '../ui/time';

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
      <Fault error={error} />
      {shown.length === 0 && <p class="empty">{t(unreadOnly ? 'notifications.none-unread' : 'notifications.none')}</p>}
      <ul class="groups">
        {[...Map.groupBy(shown, (n) => n.report_id)].map(([reportId, group]) => (
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
        {group.map((n) => (
          <li key={n.id} data-unread={!n.read}>
            <span class="what">
              {describe(n)}
              {n.note && <q>{n.note}</q>}
              <small>
                <Time at={n.happened_at} />
              </small>
            </span>
            <button
              type="button"
              class="plain dot-button"
              aria-label={`${t(n.read ? 'notifications.mark-unread' : 'notifications.mark-read')}: ${describe(n)}`}
              aria-pressed={n.read}
              onClick={() => act(mark([n.id], !n.read))}
            />
          </li>
        ))}
      </ul>
    </li>
  );
}
