import { useState } from 'preact/hooks';

import { must, notificationService, type DelayedMessage } from '../../../api/client';
import { t } from '../../../lang/console';
import { useAct } from '../../../ui/act';
import { Fault } from '../../../ui/problem';
import { exactTime } from '../../../ui/time';
import { Acts } from '../acts';
import { Reason } from '../reason';
import { Rows, usePages } from '../rows';

const PAGE = 50;

/** The messages that wait until a time, the next one first. */
export function Delayed() {
  const found = usePages(PAGE, (query) => must(notificationService.GET('/admin/delayed', { params: { query } })));
  return (
    <section class="stack" aria-labelledby="delayed">
      <h2 id="delayed">{t('delayed')}</h2>
      <Rows found={found} none={t('delayed.none')}>
        {(message) => <Row key={`${message.queue} ${message.message_id}`} message={message} onDone={found.refresh} />}
      </Rows>
    </section>
  );
}

function Row({ message, onDone }: { message: DelayedMessage; onDone(): void }) {
  const [open, setOpen] = useState(false);
  const { error, run } = useAct();
  const path = { queue: message.queue, message_id: message.message_id };
  const release = () =>
    run(() => must(notificationService.POST('/admin/delayed/{queue}/{message_id}/release', { params: { path } })).then(onDone));
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
