import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { t, tn } from '../lang/guest';
import { Fault } from '../ui/problem';
import { here, href } from '../ui/router';
import { countReports } from './state';

interface Props {
  /** Why it could not be ended. */
  error: unknown;
  onEnd(): void;
  onClose(): void;
}

/** A guest's place of an account, and the way out: it says what is lost before it is. */
export function GuestAccount({ error, onEnd, onClose }: Props) {
  const [ending, setEnding] = useState(false);
  if (ending) return <End error={error} onEnd={onEnd} onClose={onClose} />;
  return (
    <div class="stack">
      <p>
        <strong>{t('guest')}</strong>
        <br />
        <span class="quiet">{t('guest.account')}</span>
      </p>
      <div class="bar">
        <a class="button primary" href={href('sign-in', { to: here() })} onClick={onClose}>
          {t('sign-in')}
        </a>
        <a class="button" href={href('settings')} onClick={onClose}>
          {t('settings')}
        </a>
        <button type="button" onClick={() => setEnding(true)}>
          {t('guest.end')}
        </button>
      </div>
    </div>
  );
}

function End({ error, onEnd, onClose }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  // The button that had the focus is gone.
  useLayoutEffect(() => heading.current?.focus(), []);
  const [count, setCount] = useState(0);
  useEffect(() => void countReports().then(setCount, () => {}), []);
  return (
    <section class="stack" aria-labelledby="end">
      <h3 id="end" tabIndex={-1} ref={heading}>
        {t('guest.end.title')}
      </h3>
      <ul class="stack">
        {count > 0 && <li>{tn('guest.end.lost', count)}</li>}
        <li>{t('guest.end.draft')}</li>
        <li>{t('guest.end.city')}</li>
        <li>{t('guest.end.forever')}</li>
      </ul>
      <Fault error={error} />
      <div class="bar">
        <a class="button primary" href={href('settings')} onClick={onClose}>
          {t('guest.end.keep')}
        </a>
        <button type="button" class="danger" onClick={onEnd}>
          {t('guest.end.do')}
        </button>
      </div>
    </section>
  );
}
