import { useEffect, useState } from 'preact/hooks';

import { must, notificationService, type MailKind, type Preferences } from '../../api/client';
import { t } from '../../lang/i18n';
import { toast } from '../../state/toasts';
import { Fault } from '../../ui/problem';

const KINDS: MailKind[] = ['report.status.updated', 'report.vote.received'];
/** What is offered to whoever wants quiet hours. */
const NIGHT = { from: '21:00', to: '07:00' };

/** What the reader is written about at once, and when not. */
export function AtOnce() {
  const [wanted, setWanted] = useState<Preferences>();
  const [error, setError] = useState<unknown>();
  const load = () =>
    must(notificationService.GET('/me/preferences')).then((found) => {
      setWanted(found);
      setError(undefined);
    }, setError);
  useEffect(() => void load(), []);
  if (!wanted) return <Fault error={error} retry={load} />;

  const { email, quiet_hours: quiet } = wanted;
  const toggle = (kind: MailKind) => setWanted({ ...wanted, email: KINDS.filter((each) => (each === kind) !== email.includes(each)) });
  const setQuiet = (hours: typeof quiet) => setWanted({ email, ...(hours && { quiet_hours: hours }) });
  const submit = async (event: Event) => {
    event.preventDefault();
    try {
      setWanted(await must(notificationService.PUT('/me/preferences', { body: wanted })));
      setError(undefined);
      toast(t('settings.saved'));
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <form class="panel stack" onSubmit={submit} aria-labelledby="at-once">
      <h2 id="at-once">{t('settings.at-once')}</h2>
      <p class="quiet">{t('settings.at-once.hint')}</p>
      <div>
        {KINDS.map((kind) => (
          <div key={kind}>
            <label class="check">
              <input type="checkbox" checked={email.includes(kind)} onChange={() => toggle(kind)} />
              {t(`settings.kind.${kind}`)}
            </label>
          </div>
        ))}
        <label class="check">
          <input type="checkbox" checked={quiet !== undefined} onChange={() => setQuiet(quiet ? undefined : NIGHT)} />
          {t('settings.quiet')}
        </label>
      </div>
      {quiet && (
        <div class="bar">
          {(['from', 'to'] as const).map((end) => (
            <label key={end} class="field">
              <span>{t(`settings.quiet.${end}`)}</span>
              <input
                type="time"
                required
                value={quiet[end]}
                onInput={(event) => setQuiet({ ...quiet, [end]: event.currentTarget.value })}
              />
            </label>
          ))}
        </div>
      )}
      <Fault error={error} />
      <div class="bar">
        <button class="primary">{t('settings.save')}</button>
      </div>
    </form>
  );
}
