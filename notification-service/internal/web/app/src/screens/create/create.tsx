import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { Failure, type Report } from '../../api/client';
import { language, t } from '../../lang/i18n';
import { keepForSignIn } from '../../photos/store';
import { loadCategories, loadOffered } from '../../state/categories';
import { config } from '../../state/config';
import { discardDraft, draft, draftError, fileDraft, updateDraft, type Draft } from '../../state/draft';
import { handOver } from '../../state/handover';
import { loadGuestRules } from '../../state/guests';
import { filesAsGuest, session } from '../../state/session';
import { lazily } from '../../ui/lazily';
import { Phone } from '../../ui/phones';
import { explain, Fault } from '../../ui/problem';
import { go, href, route, setQuery } from '../../ui/router';
import { Skeleton } from '../../ui/skeleton';
import { FieldFault, OtherFaults } from './field-fault';
import { PickCategory, signpost } from './category';
import { hasPlace, Place } from './place';

const loadDuplicates = () => import('./duplicates');
const loadPrivacy = async () => (await import('./privacy')).Privacy;
const Privacy = lazily(loadPrivacy, true);
const loadPhotos = async () => (await import('./photos')).Photos;
const Photos = lazily(loadPhotos, true);
const loadLink = () =>
  import('./link').catch(() => {
    throw new Failure(); // there is no network
  });
const Known = lazily(async () => (await loadLink()).Known, true);
const Duplicates = lazily(async () => (await loadDuplicates()).Duplicates, true);

/** How soon a report without an answer is sent again. */
const RESEND_MS = 5_000;

/** Each fills a phone's screen, and has the fields that its faults are shown in. */
const steps = [
  { name: 'place', fields: ['/latitude', '/longitude', '/address', '/asset'] },
  { name: 'what', fields: ['/category_id'] },
  { name: 'words', fields: ['/title', '/description'] },
  { name: 'privacy', fields: ['/privacy_level'] },
] as const;
/** Nobody waits longer to be asked about reports nearby. */
const NEAR_MS = 3_000;

/** The parameters of an address that say something about the report; link.tsx reads them. */
const LINK = ['lat', 'lng', 'category', 'asset'];

const WHAT = 1;
const WORDS = 2;

async function send(): Promise<void> {
  const { privacy_level, mail } = draft.value;
  const report = await fileDraft(becomeGuest);
  if (report) go(`filed/${report.id}`, privacy_level === 'anonymous' && mail ? { notified: '1' } : {});
}

async function becomeGuest(): Promise<void> {
  const code = await import('../../guest/state').catch(() => {
    throw new Failure(); // there is no network
  });
  await code.becomeGuest();
}

/** Files a report in steps. What is typed survives a reload and a lost connection; who files it is asked last. */
export function CreateScreen() {
  const { sending } = draft.value;
  const error = draftError.value;
  useEffect(() => {
    // Loads what later steps need before the reader gets there.
    void Promise.all([loadDuplicates(), loadPrivacy(), loadPhotos()]).catch(() => {});
    if (config.guests && !session.value) loadGuestRules().catch(() => {});
    return resendUntilAnswered();
  }, []);
  // A form that was sent shows its outcome, which is on the last step.
  const at = sending ? steps.length - 1 : Math.min(Math.max(Number(route.value.query.get('step') ?? 1) - 1, 0), steps.length - 1) || 0;
  const last = at === steps.length - 1;
  const guest = filesAsGuest();
  const emergency = config.city?.links?.emergency;
  const [asking, setAsking] = useState(false);
  useEffect(() => {
    if (!(error instanceof Failure)) return;
    const wrong = error.kind === 'signpost' ? WHAT : steps.findIndex(({ fields }) => fields.some((field) => error.fault(field)));
    if (error.kind === 'guests-closed') loadGuestRules().catch(() => {});
    if (wrong === WHAT) loadCategories().catch(() => {}); // the city has changed them while this was written
    if (wrong >= 0) setQuery({ step: stepName(wrong) });
  }, [error]);
  const [faults, setFaults] = useLink();
  const place = JSON.stringify(draft.value.position);
  useEffect(() => void loadOffered(draft.value.position), [place, language.value]);
  // It is known before anything is typed; here the answer came later.
  const elsewhere = at > WHAT && !sending && signpost() !== undefined;
  useEffect(() => {
    if (elsewhere) setQuery({ step: stepName(WHAT) });
  }, [elsewhere]);
  const heading = useRef<HTMLHeadingElement>(null);
  const [moved, setMoved] = useState(false);
  useLayoutEffect(() => {
    if (!moved) return;
    window.scrollTo(0, 0);
    heading.current?.focus({ preventScroll: true });
  }, [at]);
  // Each step is one of the history: Back leads to the one before.
  const move = (step: number) => {
    setMoved(true);
    setFaults([]);
    const { step: _, ...link } = Object.fromEntries(route.value.query);
    go('new', { ...link, ...(step > 0 && { step: stepName(step) }) });
  };
  const near = useNear(at === WORDS);
  const submit = (event: Event) => {
    event.preventDefault();
    if (at === 0 && !hasPlace()) return setAsking(true);
    if (signpost() && at >= WHAT) return move(WHAT);
    if (!last) return move(at + 1);
    if (session.value || guest) {
      if (!session.value) updateDraft({ asGuest: true });
      return void send();
    }
    signIn();
  };
  const signInToSend = (event: MouseEvent) => {
    if (!(event.currentTarget as HTMLButtonElement).form?.reportValidity()) return;
    signIn();
  };
  const signIn = () => {
    handOver({ draft: draft.value });
    void keepForSignIn().then(() => go('sign-in', { to: 'new?step=4' }));
  };
  return (
    <div class="narrow create">
      <h1 tabIndex={-1}>{t('new')}</h1>
      {at === 0 && emergency && (
        <p class="note">
          {t('new.emergency')} <Phone number={emergency} />
        </p>
      )}
      <ol class="steps" aria-label={t('new.steps')}>
        {steps.map(({ name }, i) => (
          <li key={name} data-done={i < at}>
            <button
              type="button"
              class="link"
              disabled={sending || i > at}
              aria-current={i === at ? 'step' : undefined}
              onClick={() => move(i)}
            >
              {t(`new.step.${name}`)}
            </button>
          </li>
        ))}
      </ol>
      {faults?.map((fault) => (
        <p key={fault} class="note" role="alert">
          {fault}
        </p>
      ))}
      {!faults && <Skeleton />}
      <form class="stack" hidden={!faults} onSubmit={submit}>
        <fieldset class="bare" disabled={sending} key={at}>
          <legend class="hidden">{t(`new.step.${steps[at]!.name}`)}</legend>
          <h2 ref={heading} tabIndex={-1}>
            {t(at === WORDS && asksFor(near) ? 'duplicates' : guest && last ? 'new.step.privacy' : `new.ask.${steps[at]!.name}`)}
          </h2>
          {at === 0 && (
            <Place
              asking={asking}
              onAnswer={(goOn) => {
                setAsking(false);
                if (goOn) move(1);
              }}
            />
          )}
          {at === WHAT && <PickCategory onPick={() => move(WORDS)} />}
          {at === WORDS && !near && <Skeleton />}
          {at === WORDS && asksFor(near) && <Duplicates near={near!} onNone={() => updateDraft({ another: problemOf(draft.value) })} />}
          {at === WORDS && near && !asksFor(near) && (
            <>
              {draft.value.link && <Known />}
              <Words />
              {config.photos && <Photos />}
            </>
          )}
          {at === 3 && <Privacy />}
        </fieldset>
        <Outcome sending={sending} error={error} />
        <div class="bar actions">
          {at === WORDS && asksFor(near) ? null : last ? (
            <button class="primary" disabled={sending && !error}>
              {t(sending ? 'new.again' : session.value ? 'new.file' : guest ? 'new.guest' : 'new.sign-in')}
            </button>
          ) : (
            <button class="primary" disabled={at === WHAT && signpost() !== undefined}>
              {t('new.next')}
            </button>
          )}
          {!session.value && (guest ? at >= WORDS : at === WORDS) && !asksFor(near) && !sending && (
            <button type="button" onClick={signInToSend}>
              {t('new.sign-in')}
            </button>
          )}
          {at > 0 && !sending && (
            <button type="button" onClick={() => move(at - 1)}>
              {t('new.back')}
            </button>
          )}
        </div>
        <small class="quiet">
          {t(session.value ? 'new.kept' : guest ? 'new.kept-tab' : 'new.kept-not')}{' '}
          <button type="button" class="link" onClick={sending ? () => updateDraft({ sending: false }) : startOver}>
            {t(sending ? 'new.edit' : 'new.discard')}
          </button>
        </small>
      </form>
    </div>
  );
}

/** Two reports with the same one are about the same problem. */
const problemOf = ({ category_id, position, asset }: Draft) => JSON.stringify([category_id, position, asset?.name]);

const asksFor = (near: Report[] | undefined) => near !== undefined && near.length > 0 && draft.value.another !== problemOf(draft.value);

/** Open reports of the same problem nearby, once they are known; none where nobody can say. */
function useNear(wanted: boolean): Report[] | undefined {
  const [near, setNear] = useState<{ of: string; reports: Report[] }>();
  const problem = problemOf(draft.value);
  useEffect(() => {
    if (!wanted || near?.of === problem) return;
    let latest = true;
    const show = (reports: Report[]) => {
      if (latest) setNear({ of: problem, reports });
      latest = false; // what came first stays
    };
    loadDuplicates()
      .then(({ findNear }) => findNear(draft.value))
      .then(show, () => show([]));
    const timer = setTimeout(() => show([]), NEAR_MS);
    return () => {
      clearTimeout(timer);
      latest = false;
    };
  }, [wanted, problem]);
  return near?.of === problem ? near.reports : undefined;
}

/** Takes what the address says about the report; undefined until it is read, and then what is wrong with it. */
function useLink() {
  const { query } = route.value;
  const state = useState<string[] | undefined>(LINK.some((name) => query.has(name)) && !draft.value.sending ? undefined : []);
  useEffect(() => {
    const [faults, setFaults] = state;
    if (faults) return;
    loadLink()
      .then(({ openLink }) => openLink(query))
      .then(({ faults, step }) => {
        if (!query.has('step')) setQuery({ step });
        setFaults(faults);
      })
      .catch((error: unknown) => setFaults([explain(error)]));
  }, []);
  return state;
}

const stepName = (step: number) => (step > 0 ? String(step + 1) : '');

function startOver(): void {
  discardDraft();
  setQuery(Object.fromEntries([...route.value.query.keys()].map((name) => [name, ''])));
}

function Words() {
  const { title, description } = draft.value;
  return (
    <>
      <label class="field">
        <span>{t('new.title')}</span>
        <input
          required
          maxLength={200}
          pattern=".*\S.*"
          title={t('new.title-hint')}
          value={title}
          onInput={(e) => updateDraft({ title: e.currentTarget.value })}
        />
        <small>{t('new.title-hint')}</small>
        <FieldFault pointers={['/title']} />
      </label>
      <label class="field">
        <span>{t('new.description')}</span>
        <textarea rows={5} maxLength={4000} value={description} onInput={(e) => updateDraft({ description: e.currentTarget.value })} />
        <FieldFault pointers={['/description']} />
      </label>
    </>
  );
}

/** The result of sending; a report that was filed before it was edited is among the user's own. */
function Outcome({ sending, error }: { sending: boolean; error: unknown }) {
  if (error instanceof Failure && error.kind === 'idempotency-key-reused') {
    return (
      <p class="note" role="alert">
        {t('new.filed-before')} <a href={href('mine')}>{t('mine')}</a>
      </p>
    );
  }
  if (sending) {
    return (
      <p class="note" role="status">
        {t(error ? 'new.waiting' : 'new.sending')}
      </p>
    );
  }
  return (
    <>
      <Fault error={error} />
      <OtherFaults known={steps.flatMap(({ fields }) => fields)} />
    </>
  );
}

/** Sends a report again that had no answer, also after a reload. */
function resendUntilAnswered(): () => void {
  const again = () => draft.value.sending && navigator.onLine && void send();
  again();
  window.addEventListener('online', again);
  const timer = setInterval(again, RESEND_MS);
  return () => {
    clearInterval(timer);
    window.removeEventListener('online', again);
  };
}
