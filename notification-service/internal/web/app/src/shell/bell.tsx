import { useState } from 'preact/hooks';

import { number, tn } from '../lang/i18n';
import { unread } from '../state/notifications';
import { Icon } from '../ui/icons';
import { lazily } from '../ui/lazily';

const Panel = lazily(async () => (await import('./panel')).Panel, true);

/** Above this the exact count is of no use. */
const MANY = 99;

export function Bell() {
  const [open, setOpen] = useState(false);
  const count = unread.value;
  // A screen reader speaks the number that is shown.
  const shown = count > MANY ? `${MANY}+` : number(count);
  return (
    <>
      <button
        type="button"
        class="plain bell"
        aria-haspopup="dialog"
        aria-label={tn('bell', count, { count: shown })}
        title={count > MANY ? tn('bell', count) : undefined}
        onClick={() => setOpen(true)}
      >
        <Icon name="bell" />
        {count > 0 && <span class="count">{shown}</span>}
      </button>
      {open && <Panel onClose={() => setOpen(false)} />}
    </>
  );
}
