import './guest.css';

import { useEffect, useState } from 'preact/hooks';

import { t, tn } from '../lang/guest';
import { session } from '../state/session';
import { useAct } from '../ui/act';
import { Fault } from '../ui/problem';
import { href } from '../ui/router';
import { useSubject } from '../ui/title';
import { countReports, enterCode } from './state';

/** Where the code of another device is entered, in a browser that is nobody's yet. */
export function CodeForm() {
  useSubject(t('guest.code'));
  return (
    <div class="narrow">
      <h1 tabIndex={-1}>{t('guest.code')}</h1>
      {session.value ? session.value.guest ? <Replaces /> : <p>{t('guest.code.signed-in')}</p> : <Form />}
    </div>
  );
}

/** A browser has one guest: what would be replaced is said, and how to have both. */
function Replaces() {
  const [count, setCount] = useState<number>();
  const [error, setError] = useState<unknown>();
  const load = () => countReports().then(setCount, setError);
  useEffect(() => void load(), []);
  return (
    <div class="stack">
      <Fault error={error} retry={() => void load()} />
      {count !== undefined && <p class="note">{tn('guest.code.replaces', count)}</p>}
      <p>{t('guest.code.replaces.how')}</p>
      <p class="bar">
        <a class="button primary" href={href('sign-in', { to: 'mine' })}>
          {t('sign-in')}
        </a>
      </p>
    </div>
  );
}

function Form() {
  const [code, setCode] = useState('');
  const { busy, error, submits } = useAct();
  return (
    <form class="stack" onSubmit={submits(() => enterCode(code))} aria-busy={busy}>
      <p>{t('guest.code.hint')}</p>
      <label class="field">
        <span>{t('guest.code.field')}</span>
        <input
          class="guest-code"
          required
          maxLength={40}
          pattern=".*\S.*"
          autocomplete="one-time-code"
          autocapitalize="characters"
          spellcheck={false}
          value={code}
          onInput={(e) => setCode(e.currentTarget.value)}
        />
        <small>{t('guest.code.spaces')}</small>
      </label>
      <Fault error={error} />
      <button class="primary">{t('guest.code.enter')}</button>
    </form>
  );
}
