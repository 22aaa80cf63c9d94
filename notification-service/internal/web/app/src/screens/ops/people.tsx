import { useState } from 'preact/hooks';

import { must, notificationService, reportService } from '../../api/client';
import { number, t } from '../../lang/console';
import { toast } from '../../state/toasts';
import { useAct } from '../../ui/act';
import { Field } from '../../ui/field';
import { Modal } from '../../ui/modal';
import { usePoll } from '../../ui/poll';
import { Fault } from '../../ui/problem';
import { Time } from '../../ui/time';
import { Acts } from './acts';
import { TONE } from './tone';
import { Waiting } from './waiting';

const SHOWN = 100;

async function read() {
  const latest = { params: { query: { limit: 5 } } };
  const [{ people }, reports, notifications] = await Promise.all([
    must(reportService.GET('/admin/reports/people', { params: { query: { limit: SHOWN } } })),
    must(reportService.GET('/admin/reports/erasures', latest)),
    must(notificationService.GET('/admin/notifications/erasures', latest)),
  ]);
  const erasures = [
    ...reports.erasures.map((each) => ({ ...each, where: t('light.name.reports-database') })),
    ...notifications.erasures.map((each) => ({ ...each, where: t('light.name.notifications-database') })),
  ];
  return { people, erasures: erasures.sort((a, b) => b.requested_at.localeCompare(a.requested_at)) };
}

/** The people who work for the city, as the service has seen them, and the erasure of anybody. */
export function People() {
  const found = usePoll(read);
  /** The id of the person who is to be erased, empty until it is typed. */
  const [asked, setAsked] = useState<string>();
  if (!found.value) return <Waiting error={found.error} retry={found.refresh} />;
  const { people, erasures } = found.value;
  return (
    <div class="stack narrow">
      <p class="quiet">{t('people.hint')}</p>
      <Fault error={found.error} retry={found.refresh} />
      <ul class="rows">
        {people.map(({ id, name, role, seen_at }) => (
          <li key={id}>
            <div>
              <strong class="wrap">{name || id}</strong>
              <p class="meta">
                <span>{t(`role.${role}`)}</span>
                <span>
                  {t('people.seen')} <Time at={seen_at} />
                </span>
                {name && <code>{id}</code>}
              </p>
            </div>
            <Acts>
              <button
                type="button"
                class="link"
                aria-haspopup="dialog"
                aria-label={t('people.erase-one', { name: name || id })}
                onClick={() => setAsked(id)}
              >
                {t('people.erase')}
              </button>
            </Acts>
          </li>
        ))}
      </ul>
      <section class="panel stack" aria-labelledby="erasures">
        <h3 id="erasures">{t('people.erasures')}</h3>
        <p class="quiet">{t('people.erasures-hint')}</p>
        <Acts>
          <p class="bar">
            <button type="button" class="danger-quiet" aria-haspopup="dialog" onClick={() => setAsked('')}>
              {t('people.erase-somebody')}
            </button>
          </p>
        </Acts>
        <ul class="rows" aria-live="polite">
          {erasures.map(({ id, state, requested_at, removed, left, where }) => (
            <li key={where + id}>
              <div>
                <span class="badge" data-status={state === 'done' ? TONE.good : TONE.waiting}>
                  {t(state === 'done' ? 'people.done' : 'people.running')}
                </span>
                <p class="meta">
                  <span>{where}</span>
                  <Time at={requested_at} full />
                  <span>{t('people.removed', { count: number(Object.values(removed).reduce((sum, rows) => sum + rows, 0)) })}</span>
                  {left.length > 0 && <span>{t('people.left', { steps: left.join(', ') })}</span>}
                </p>
              </div>
            </li>
          ))}
        </ul>
      </section>
      {asked !== undefined && (
        <EraseForm
          known={asked}
          onClose={() => {
            setAsked(undefined);
            found.refresh();
          }}
        />
      )}
    </div>
  );
}

/** Asks for a person's id twice: what this does cannot be undone. */
function EraseForm({ known, onClose }: { known: string; onClose(): void }) {
  const [id, setId] = useState(known);
  const [again, setAgain] = useState('');
  const { busy, error, submits } = useAct();
  const submit = submits(async () => {
    const body = { user_id: id.trim(), confirm_user_id: again.trim() };
    // Messages to the person come from the first; asked for again, each changes nothing.
    await must(reportService.POST('/admin/reports/erasures', { body }));
    await must(notificationService.POST('/admin/notifications/erasures', { body }));
    toast(t('people.begun'));
    onClose();
  });
  return (
    <Modal title={t('people.erase-somebody')} onClose={onClose}>
      <form class="stack" onSubmit={submit} aria-busy={busy}>
        <ul class="points">
          {(['people.point.closed', 'people.point.kept', 'people.point.final'] as const).map((point) => (
            <li key={point}>{t(point)}</li>
          ))}
        </ul>
        <label class="field">
          <span>{t('people.id')}</span>
          <small>{t('people.id-hint')}</small>
          <input data-first={!known} required maxLength={255} autoComplete="off" value={id} onInput={(e) => setId(e.currentTarget.value)} />
        </label>
        <Field
          label={t('people.id-again')}
          data-first={Boolean(known)}
          required
          maxLength={255}
          autoComplete="off"
          value={again}
          onValue={setAgain}
        />
        <Fault error={error} />
        <button class="danger" disabled={!id.trim() || id.trim() !== again.trim()}>
          {t('people.erase')}
        </button>
      </form>
    </Modal>
  );
}
