import { useState } from 'preact/hooks';

import { must, notificationService, type DeadLetter } from '../../api/client';
import { t } from '../../lang/i18n';
import { Icon } from '../../ui/icons';
import { Fault } from '../../ui/problem';
import { usePoll } from '../../ui/poll';
import { href, route } from '../../ui/router';
import { Time } from '../../ui/time';
import { selectionOf } from './selection';

const PAGE = 100;

/** The dead letters that the address narrows to, newest first. */
export function DeadLetterList() {
  const query = Object.fromEntries(route.value.query) as Record<string, string | undefined>;
  const [older, setOlder] = useState<DeadLetter[]>([]);
  const [next, setNext] = useState<string>();
  const read = (cursor?: string) =>
    must(
      notificationService.GET('/admin/dlq/messages', {
        params: {
          query: {
            ...selectionOf(query),
            ...(query.state !== 'all' && { state: query.state as DeadLetter['state'] }),
            ...(cursor && { cursor }),
            limit: PAGE,
          },
        },
      }),
    );
  const page = usePoll(read, [JSON.stringify(query)]);
  const cursor = next ?? page.value?.next_cursor;
  const more = () =>
    read(cursor).then((found) => {
      setOlder([...older, ...found.items]);
      setNext(found.next_cursor ?? '');
    });
  const shown = [...new Map([...(page.value?.items ?? []), ...older].map((letter) => [letter.id, letter])).values()];
  return (
    <div class="stack">
      <a class="back" href={href('ops/dead-letters')}>
        <Icon name="back" /> {t('dead.groups')}
      </a>
      <Fault error={page.error} retry={page.again} />
      {query.error_group && <h2>{query.error_group}</h2>}
      {page.value && shown.length === 0 && <p class="empty">{t('dead.none')}</p>}
      <ul class="rows">
        {shown.map((letter) => (
          <li key={letter.id}>
            <div>
              <a href={href(`ops/dead-letters/${letter.id}`)}>{letter.error}</a>
              <p class="meta">
                <span class="state" data-state={letter.state}>
                  {t(`dead.state.${letter.state}`)}
                </span>
                <span>{letter.type}</span>
                <span>{letter.queue}</span>
                <Time at={letter.failed_at} />
              </p>
            </div>
          </li>
        ))}
      </ul>
      {cursor && (
        <button type="button" class="wide" onClick={more}>
          {t('more')}
        </button>
      )}
    </div>
  );
}
