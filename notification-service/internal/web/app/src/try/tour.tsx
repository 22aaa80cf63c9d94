/** The tour: whose eyes the city is seen with, and six steps for each of them, on the page itself. */
import { signal } from '@preact/signals';
import { render } from 'preact';
import { useState } from 'preact/hooks';

import { language, languages, setLanguage } from '../lang/i18n';
import { preferences } from '../state/preferences';
import { go, href } from '../ui/router';
import { examples } from './answers';
import { me, people, signIn, startOver } from './city';
import { t } from './words';

type Who = keyof typeof people;

const STEPS = 6;
const ROLES: Who[] = ['resident', 'official', 'operator'];

/** Where each step is; its words have its number. */
function addressOf(who: Who, step: number): string {
  const { popular, asked } = examples();
  const addresses: Record<Who, string[]> = {
    resident: ['', '?status=resolved', `reports/${popular}`, 'new', 'mine', `reports/${asked}`],
    official: [
      'queue',
      `queue?report=${popular}`,
      'queue?status=in_progress',
      'queue?status=all&q=lampu',
      'queue/templates',
      'queue/numbers',
    ],
    operator: ['ops', 'ops/queues', 'ops/dead-letters', 'ops/webhooks', 'ops/schedules', 'ops/categories'],
  };
  return addresses[who][step - 1] ?? '';
}

const KEY = 'cityconnect.tour';
/** Kept by the tab: another role loads the page again. */
const step = signal(Number(window.sessionStorage.getItem(KEY) ?? 1));

function show(who: Who, to: number): void {
  step.value = to;
  window.sessionStorage.setItem(KEY, String(to));
  const [path = '', query = ''] = addressOf(who, to).split('?');
  go(path, Object.fromEntries(new URLSearchParams(query)));
}

/** Another role is another user: nothing of before may stay. */
function become(who: Who): void {
  signIn(people[who]);
  window.sessionStorage.setItem(KEY, '1');
  location.replace(href(addressOf(who, 1)));
}

function Tour() {
  const [open, setOpen] = useState(true);
  const role = me?.role;
  const who = ROLES.find((each) => each === role);
  const at = step.value;
  return (
    <aside class="tour panel" aria-label={t('try')} data-step={at}>
      <div class="bar spread">
        <div class="bar" role="group" aria-label={t('try.as')}>
          {ROLES.map((each) => (
            <button key={each} type="button" class="chip" aria-pressed={each === who} onClick={() => become(each)}>
              {t(`try.${each}`)}
            </button>
          ))}
        </div>
        <button type="button" class="link" aria-expanded={open} onClick={() => setOpen(!open)}>
          {t(open ? 'try.fold' : 'try.unfold')}
        </button>
      </div>
      {open && (
        <>
          <p role="status">{who ? t(`try.${who}.${at as 1}`) : t('try.begin')}</p>
          <div class="bar spread">
            {who && (
              <div class="bar">
                <button type="button" disabled={at === 1} onClick={() => show(who, at - 1)}>
                  {t('try.back')}
                </button>
                <button type="button" class="primary" disabled={at === STEPS} onClick={() => show(who, at + 1)}>
                  {t('try.next')}
                </button>
                <span class="quiet">{t('try.step', { at, of: STEPS })}</span>
              </div>
            )}
            <div class="bar">
              {Object.entries(languages()).map(([tag, name]) => (
                <button key={tag} type="button" class="link" lang={tag} aria-pressed={tag === language.value} onClick={() => speak(tag)}>
                  {name}
                </button>
              ))}
              <button type="button" class="link" onClick={again}>
                {t('try.again')}
              </button>
            </div>
          </div>
        </>
      )}
    </aside>
  );
}

function speak(tag: string): void {
  preferences.language.value = tag;
  void setLanguage(tag);
}

/** The city as it was recorded, from the resident's first step. */
function again(): void {
  startOver();
  become('resident');
}

export function showTour(): void {
  const root = document.body.appendChild(document.createElement('div'));
  render(<Tour />, root);
}
