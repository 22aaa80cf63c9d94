import { useEffect, useState } from 'preact/hooks';

import { must, notificationService, type MailKind, type Preferences } from '../../api/client';
import { t } from '../../lang/settings';
import { toast } from '../../state/toasts';
import { useAct } from '../../ui/act';
import { Fault } from '../../ui/problem';

const KINDS: MailKind[] = [
  'report.status.updated',
  'report.question.asked',
  'report.question.reminded',
  'report.vote.received',
  'report.corrected',
];
/** The quiet hours that are offered first. */
const NIGHT = { from: '21:00', to: '07:00' };

interface Props {
  /** Whether there is an address to write to, and a device to tell. */
  mails: boolean;
  devices: boolean;
}

/** Which events the reader is notified of at once, by which channel, and the quiet hours. */
export function AtOnce({ mails, devices }: Props) {
  const [wanted, setWanted] = useState<Preferences>();
  const { error, run, submits } = useAct();
  const load = () => run(() => must(notificationService.GET('/me/preferences')).then(setWanted));
  useEffect(() => void load(), []);
  if (!wanted) return <Fault error={error} retry={load} />;

  const { email, push, quiet_hours: quiet } = wanted;
  const ways = [mails && ('email' as const), devices && ('push' as const)].filter((way) => way !== false);
  const toggle = (way: 'email' | 'push', kind: MailKind) =>
    setWanted({ ...wanted, [way]: KINDS.filter((each) => (each === kind) !== wanted[way]?.includes(each)) });
  const setQuiet = (hours: typeof quiet) => setWanted({ email, ...(push && { push }), ...(hours && { quiet_hours: hours }) });
  const submit = submits(async () => {
    setWanted(await must(notificationService.PUT('/me/preferences', { body: wanted })));
    toast(t('settings.saved'));
  });
  return (
    <form class="panel stack" onSubmit={submit} aria-labelledby="at-once">
      <h2 id="at-once">{t('settings.at-once')}</h2>
      <p class="quiet">{t('settings.at-once.hint')}</p>
      {ways.map((way) => (
        <fieldset key={way} class="bare">
          <legend>{t(`settings.by.${way}`)}</legend>
          {KINDS.map((kind) => (
            <div key={kind}>
              <label class="check">
                <input type="checkbox" checked={wanted[way]?.includes(kind) ?? false} onChange={() => toggle(way, kind)} />
                {t(`settings.kind.${kind}`)}
              </label>
            </div>
          ))}
        </fieldset>
      ))}
      {mails && (
        <label class="check">
          <input type="checkbox" checked={quiet !== undefined} onChange={() => setQuiet(quiet ? undefined : NIGHT)} />
          {t('settings.quiet')}
        </label>
      )}
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
