import './guest.css';

import { useState } from 'preact/hooks';

import { must, reportService } from '../api/client';
import { t, tn } from '../lang/guest';
import { useAct } from '../ui/act';
import { Fault } from '../ui/problem';
import { href } from '../ui/router';
import { now } from '../ui/time';

type Code = { code: string; expires_at: string };

/** Shows a guest how to have the reports on another device, by a code that works once. */
export function TakeWithYou() {
  const [code, setCode] = useState<Code>();
  const { busy, error, run } = useAct();
  const make = async () => setCode(await must(reportService.POST('/guests/code')));
  const left = code ? new Date(code.expires_at).getTime() - Math.max(now.value, Date.now()) : 0;
  return (
    <section class="panel stack" aria-labelledby="take-with-you" aria-busy={busy}>
      <h2 id="take-with-you">{t('guest.move')}</h2>
      <p>{t('guest.move.hint')}</p>
      <p class="quiet">
        {t('guest.move.how')} {t('guest.move.account')}
      </p>
      {code && left > 0 && <Shown code={code.code} left={left} />}
      {code && left <= 0 && <p class="note">{t('guest.move.over')}</p>}
      {/* Letter by letter, and once: what is left changes by the minute, which nobody has to hear. */}
      <p class="hidden" role="status">
        {code && (left > 0 ? `${t('guest.move.label')}: ${spelled(code.code)}` : t('guest.move.over'))}
      </p>
      <Fault error={error} />
      <div class="bar">
        <button type="button" class={code ? undefined : 'primary'} onClick={() => void run(make)}>
          {t(code ? 'guest.move.again' : 'guest.move.make')}
        </button>
        <a class="button" href={href('sign-in', { to: 'settings' })}>
          {t('sign-in')}
        </a>
      </div>
      <a href={href('sign-in/code')}>{t('guest.move.other')}</a>
    </section>
  );
}

const MINUTE_MS = 60_000;

const spelled = (code: string) => code.replace('-', '').split('').join(' ');

function Shown({ code, left }: { code: string; left: number }) {
  const [copied, setCopied] = useState('');
  const minutes = Math.floor(left / MINUTE_MS);
  return (
    <div class="stack">
      <p>{t('guest.move.where', { address: `${location.host}/sign-in/code` })}</p>
      <p class="guest-code">
        <code aria-hidden="true">{code}</code>
        <span class="hidden">{spelled(code)}</span>
      </p>
      <p class="quiet">
        {minutes > 0 ? tn('guest.move.minutes', minutes) : t('guest.move.soon')}. {t('guest.move.once')}
      </p>
      {'clipboard' in navigator && (
        <p class="bar">
          <button
            type="button"
            onClick={() =>
              void navigator.clipboard.writeText(code).then(
                () => setCopied(code),
                () => {},
              )
            }
          >
            {t('guest.move.copy')}
          </button>
          <span role="status">{copied === code && t('guest.move.copied')}</span>
        </p>
      )}
    </div>
  );
}
