import { useState } from 'preact/hooks';

import { t } from '../lang/i18n';
import { announceChange } from '../live/live';
import { Brand } from '../shell/brand';
import { config } from '../state/config';
import { session, signInAs, type Role } from '../state/session';
import { lazily } from '../ui/lazily';
import { Fault } from '../ui/problem';
import { here, href, route } from '../ui/router';

const CodeForm = lazily(async () => (await import('../guest/code-form')).CodeForm);
const WithoutAccount = lazily(async () => (await import('../guest/without-account')).WithoutAccount, true);

const ROLES: Role[] = ['resident', 'official', 'moderator', 'operator', 'auditor'];

/** Sign-in, on its own or in place of a screen that requires it. */
export function SignInScreen({ path }: { path: string[] }) {
  if (path[1] === 'code' && path[0] === 'sign-in') return <CodeForm />;
  const to = path[0] === 'sign-in' ? (route.value.query.get('to') ?? '') : here();
  return (
    <div class="narrow">
      {config.city?.name && (
        <p class="brand">
          <Brand />
        </p>
      )}
      <h1 tabIndex={-1}>{t('sign-in')}</h1>
      {route.value.query.has('failed') && (
        <p class="fault" role="alert">
          {t('sign-in.failed')}
        </p>
      )}
      {config.auth.mode === 'dev' && <SignInAs to={to} />}
      {config.auth.mode === 'oidc' && <SignInWith to={to} />}
      {config.auth.mode === 'none' && <p>{t('sign-in.none')}</p>}
      {config.guests && <WithoutAccount to={to} />}
    </div>
  );
}

/** Drafts of a guest go along to the account. */
async function takeAlong(): Promise<void> {
  if (session.value?.guest) await (await import('../guest/state')).takeAlong();
}

/** Loads the page again as another user: nothing of before may stay. */
function arrive(to: string): void {
  announceChange('session');
  location.replace(href(to));
}

function SignInAs({ to }: { to: string }) {
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('resident');
  const [error, setError] = useState<unknown>();
  const submit = (event: Event) => {
    event.preventDefault();
    takeAlong()
      .then(() => signInAs(name, role))
      .then(() => arrive(to), setError);
  };
  return (
    <form onSubmit={submit} class="stack">
      <p class="note">{t('sign-in.dev')}</p>
      <label class="field">
        <span>{t('sign-in.name')}</span>
        <input required maxLength={100} autocomplete="nickname" value={name} onInput={(e) => setName(e.currentTarget.value)} />
      </label>
      <fieldset class="choices">
        <legend>{t('sign-in.role')}</legend>
        {ROLES.map((each) => (
          <label key={each} class="chip">
            <input type="radio" name="role" checked={role === each} onChange={() => setRole(each)} />
            <span>{t(`role.${each}`)}</span>
          </label>
        ))}
      </fieldset>
      <Fault error={error} />
      <button class="primary">{t('sign-in')}</button>
    </form>
  );
}

function SignInWith({ to }: { to: string }) {
  const [error, setError] = useState<unknown>();
  const begin = () =>
    takeAlong()
      .then(() => import('../state/oidc'))
      .then(({ beginSignIn }) => beginSignIn(href(to)))
      .catch(setError);
  return (
    <div class="stack">
      <p>{t('sign-in.oidc')}</p>
      <Fault error={error} retry={begin} />
      <button type="button" class="primary" onClick={begin}>
        {t('sign-in.continue')}
      </button>
    </div>
  );
}
