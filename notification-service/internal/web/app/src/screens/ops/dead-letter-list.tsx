import { useState } from 'preact/hooks';

import { must, notificationService, type DeadLetter } from '../../api/client';
import { t } from '../../lang/i18n';
import { cause } from '../../ui/cause';
import { Icon } from '../../ui/icons';
import { Fault } from '../../ui/problem';
import { usePoll } from '../../ui/poll';
import { href, route } from '../../ui/router';
import { Time } from '../../ui/time';
import { ReportLink } from './report-link';
import { selectionOf } from './selection';

const PAGE = 100;

/** The dead letters that the address narrows to, newest first. */
export function DeadLetterList() {
  const query = Object.fromEntries(route.value.query) as Query;
  const [pages, setPages] = useState(1);
  const found = usePoll(() => readPages(query, pages), [JSON.stringify(query), pages]);
  const letters = found.value?.letters ?? [];
  return (
    <div class="stack">
      <a class="back" href={href('ops/dead-letters')}>
        <Icon name="back" /> {t('dead.groups')}
      </a>
      <Fault error={found.error} retry={found.refresh} />
      {query.error_group && <h2>{cause(query.error_group)}</h2>}
      {found.value && letters.length === 0 && <p class="empty">{t('dead.none')}</p>}
      <ul class="rows">
        {letters.map((letter) => (
          <li key={letter.id}>
            <div>
              <a href={href(`ops/dead-letters/${letter.id}`)}>{cause(letter.error)}</a>
              <p class="meta">
                <span class="state" data-state={letter.state}>
                  {t(`dead.state.${letter.state}`)}
                </span>
                <span>{letter.type}</span>
                <span>{letter.queue}</span>
                <Time at={letter.failed_at} full seconds />
              </p>
              <p class="meta">
                <span>#{letter.id}</span>
                <code>{letter.message_id}</code>
                <ReportLink letter={letter} />
              </p>
            </div>
          </li>
        ))}
      </ul>
      {found.value?.more && (
        <button type="button" class="wide" onClick={() => setPages(found.value!.pages + 1)}>
          {t('more')}
        </button>
      )}
    </div>
  );
}

type Query = Record<string, string | undefined>;

/** Reads all pages again: dead letters come and go while the list is shown. */
async function readPages(asked: Query, pages: number) {
  const letters: DeadLetter[] = [];
  let cursor: string | undefined;
  for (let page = 0; page === 0 || (cursor && page < pages); page++) {
    const query = {
      ...selectionOf(asked),
      ...(asked.state !== 'all' && { state: asked.state as DeadLetter['state'] }),
      ...(cursor && { cursor }),
      limit: PAGE,
    };
    const found = await must(notificationService.GET('/admin/dlq/messages', { params: { query } }));
    letters.push(...found.items);
    cursor = found.next_cursor;
  }
  return { letters, pages, more: cursor !== undefined };
}
