import { useState } from 'preact/hooks';

import { must, notificationService, type DelayedMessage } from '../../../api/client';
import { t } from '../../../lang/console';
import { Fault } from '../../../ui/problem';
import { usePoll } from '../../../ui/poll';
import { exactTime } from '../../../ui/time';
import { Acts } from '../acts';
import { Reason } from '../reason';
import { Waiting } from '../waiting';

const PAGE = 50;

/** The messages that wait until a time, the next one first. */
export function Delayed() {
  const [pages, setPages] = useState(1);
  const found = usePoll(() => readPages(pages), [pages]);
  return (
    <section class="stack" aria-labelledby="delayed">
      <h2 id="delayed">{t('delayed')}</h2>
      {found.value ? <Fault error={found.error} retry={found.refresh} /> : <Waiting error={found.error} retry={found.refresh} />}
      {found.value?.messages.length === 0 && <p class="empty">{t('delayed.none')}</p>}
      <ul class="rows">
        {found.value?.messages.map((message) => (
          <Row key={`${message.queue} ${message.message_id}`} message={message} onDone={found.refresh} />
        ))}
      </ul>
      {found.value?.more && (
        <button type="button" class="wide" onClick={() => setPages(pages + 1)}>
          {t('more')}
        </button>
      )}
    </section>
  );
}

function Row({ message, onDone }: { message: DelayedMessage; onDone(): void }) {
  const [open, setOpen] = useState(false);
  const [error, setError] = useState<unknown>();
  const path = { queue: message.queue, message_id: message.message_id };
  const release = () =>
    must(notificationService.POST('/admin/delayed/{queue}/{message_id}/release', { params: { path } })).then(() => {
      setError(undefined);
      onDone();
    }, setError);
  const cancel = (reason: string) =>
    must(notificationService.DELETE('/admin/delayed/{queue}/{message_id}', { params: { path, query: { reason } } }));
  return (
    <li>
      <div>
        <strong>
          {t('delayed.until')} <time dateTime={message.due_at}>{exactTime(new Date(message.due_at))}</time>
        </strong>
        <p class="meta">
          <span>{message.type}</span>
          <span>{message.queue}</span>
          <code>{message.message_id}</code>
        </p>
        <Fault error={error} />
      </div>
      <Acts>
        <div class="bar">
          <button type="button" onClick={release}>
            {t('delayed.release')}
          </button>
          <button type="button" aria-haspopup="dialog" onClick={() => setOpen(true)}>
            {t('discard')}
          </button>
        </div>
      </Acts>
      {open && (
        <Reason
          title={t('discard')}
          onSubmit={cancel}
          onClose={() => {
            setOpen(false);
            onDone();
          }}
        />
      )}
    </li>
  );
}

/** Reads all pages again: messages come and go while the list is shown. */
async function readPages(pages: number) {
  const messages: DelayedMessage[] = [];
  let cursor: string | undefined;
  for (let page = 0; page === 0 || (cursor && page < pages); page++) {
    const query = { limit: PAGE, ...(cursor && { cursor }) };
    const found = await must(notificationService.GET('/admin/delayed', { params: { query } }));
    messages.push(...found.items);
    cursor = found.next_cursor;
  }
  return { messages, more: cursor !== undefined };
}
