import { useState } from 'preact/hooks';

import { must, notificationService, type Difference, type Target } from '../../api/client';
import { t } from '../../lang/console';
import { categories } from '../../state/categories';
import { useAct } from '../../ui/act';
import { Field, Lines } from '../../ui/field';
import { Final } from '../../ui/final-form';
import { Modal } from '../../ui/modal';
import { usePoll } from '../../ui/poll';
import { Fault } from '../../ui/problem';
import { reference } from '../../ui/reference';
import { href } from '../../ui/router';
import { Time } from '../../ui/time';
import { Acts } from './acts';
import { Rows } from './rows';

/** The systems of departments that get reports by Open311, and what differs there. */
export function BackOffice() {
  const targets = usePoll(async () => ({ items: (await must(notificationService.GET('/admin/open311/targets'))).targets }));
  const differences = usePoll(async () => ({ items: (await must(notificationService.GET('/admin/open311/differences'))).differences }));
  const [edited, setEdited] = useState<Target | 'new'>();
  const [removed, setRemoved] = useState<Target>();
  const [decided, setDecided] = useState<Difference>();
  const nameOf = (id: string) => targets.value?.items.find((target) => target.id === id)?.name ?? '';
  return (
    <div class="stack">
      <div class="bar spread">
        <h2>{t('back-office.systems')}</h2>
        <Acts>
          <button type="button" class="primary" aria-haspopup="dialog" onClick={() => setEdited('new')}>
            {t('back-office.add')}
          </button>
        </Acts>
      </div>
      <p class="quiet">{t('back-office.hint')}</p>
      <Rows found={targets} none={t('back-office.none')}>
        {(target) => (
          <li key={target.id}>
            <div>
              <strong>{target.name}</strong>
              <p class="meta">
                <span>{new URL(target.url).host}</span>
                {!target.enabled && <span>{t('back-office.held')}</span>}
                {target.polled_at && (
                  <span>
                    {t('back-office.read')} <Time at={target.polled_at} />
                  </span>
                )}
              </p>
              {target.problem && <p class="fault">{target.problem}</p>}
            </div>
            <Acts>
              <button type="button" aria-haspopup="dialog" onClick={() => setEdited(target)}>
                {t('back-office.change')}
              </button>
              <button type="button" class="danger-quiet" aria-haspopup="dialog" onClick={() => setRemoved(target)}>
                {t('back-office.remove')}
              </button>
            </Acts>
          </li>
        )}
      </Rows>
      <h2>{t('back-office.differences')}</h2>
      <Rows found={differences} none={t('back-office.equal')}>
        {(difference) => (
          <li key={difference.report_id + difference.target_id}>
            <div>
              <a href={href(`reports/${difference.report_id}`)}>{reference(difference.report_id)}</a>
              <p>{sentence(difference)}</p>
              <p class="meta">
                <span>
                  {nameOf(difference.target_id)} {difference.number}
                </span>
                <Time at={difference.since} full />
                {difference.error && !difference.unknown && <span>{difference.error}</span>}
              </p>
            </div>
            {difference.undecided && (
              <Acts>
                <button type="button" aria-haspopup="dialog" onClick={() => setDecided(difference)}>
                  {t('back-office.decide')}
                </button>
              </Acts>
            )}
          </li>
        )}
      </Rows>
      {edited && (
        <TargetForm
          {...(edited !== 'new' && { target: edited })}
          onClose={() => {
            setEdited(undefined);
            targets.refresh();
          }}
        />
      )}
      {removed && (
        <Final
          title={t('back-office.remove')}
          points={[t('back-office.remove-hint', { name: removed.name })]}
          act={() => must(notificationService.DELETE('/admin/open311/targets/{id}', { params: { path: { id: removed.id } } }))}
          onClose={() => {
            setRemoved(undefined);
            targets.refresh();
          }}
        />
      )}
      {decided && (
        <Decision
          difference={decided}
          onClose={() => {
            setDecided(undefined);
            differences.refresh();
          }}
        />
      )}
    </div>
  );
}

function sentence({ kind, status, their_status = '', unknown }: Difference): string {
  if (kind === 'no_number') return t(unknown ? 'back-office.unknown' : 'back-office.no-number');
  if (kind === 'missing_number') return t('back-office.missing');
  return t('back-office.status', { ours: t(`status.${status as 'pending'}`), theirs: their_status });
}

/** Ends the doubt about a report: its number in the system, or once more. */
function Decision({ difference, onClose }: { difference: Difference; onClose(): void }) {
  const [number, setNumber] = useState('');
  const { error, run, submits } = useAct();
  const decide = async (body: { number?: string }) => {
    const path = { id: difference.target_id, report_id: difference.report_id };
    await must(notificationService.POST('/admin/open311/targets/{id}/reports/{report_id}', { params: { path }, body }));
    onClose();
  };
  return (
    <Modal title={t('back-office.decide')} onClose={onClose}>
      <form class="stack" onSubmit={submits(() => decide({ number: number.trim() }))}>
        <p>{t('back-office.decide-hint')}</p>
        <code>{difference.report_id}</code>
        <Field label={t('back-office.number')} required maxLength={60} value={number} onValue={setNumber} />
        <Fault error={error} />
        <p class="bar">
          <button class="primary">{t('back-office.arrived')}</button>
          <button type="button" class="danger-quiet" onClick={() => void run(() => decide({}))}>
            {t('back-office.again')}
          </button>
        </p>
      </form>
    </Modal>
  );
}

/** Connects a system, or changes it. Keys that are there stay unless others are typed. */
function TargetForm({ target, onClose }: { target?: Target; onClose(): void }) {
  const [name, setName] = useState(target?.name ?? '');
  const [url, setURL] = useState(target?.url ?? '');
  const [jurisdiction, setJurisdiction] = useState(target?.jurisdiction ?? '');
  const [key, setKey] = useState('');
  const [updateKey, setUpdateKey] = useState('');
  const [connection, setConnection] = useState('');
  const [codes, setCodes] = useState(new Map(target?.services.map((each) => [each.category_id, each.service_code])));
  const [words, setWords] = useState((target?.statuses ?? []).map(({ word, status }) => `${word} = ${status}`).join('\n'));
  const [repeats, setRepeats] = useState(target?.repeats ?? false);
  const [enabled, setEnabled] = useState(target?.enabled ?? true);
  const { error, submits } = useAct();
  const submit = submits(async () => {
    const body = {
      name: name.trim(),
      url: url.trim(),
      jurisdiction: jurisdiction.trim(),
      services: [...codes].flatMap(([category_id, code]) => (code.trim() ? [{ category_id, service_code: code.trim() }] : [])),
      statuses: words.split('\n').flatMap((line) => {
        const [word = '', status = ''] = line.split('=').map((part) => part.trim());
        return word ? [{ word, status: status as Target['statuses'][number]['status'] }] : [];
      }),
      repeats,
      ...(key && { api_key: key.trim() }),
      ...(updateKey && { update_key: updateKey.trim() }),
    };
    if (target) {
      const changed = { ...body, enabled, ...(connection && { connection_key: connection.trim() }) };
      await must(notificationService.PATCH('/admin/open311/targets/{id}', { params: { path: { id: target.id } }, body: changed }));
    } else await must(notificationService.POST('/admin/open311/targets', { body: { ...body, connection_key: connection.trim() } }));
    onClose();
  });
  const kept = target && t('back-office.key-kept');
  return (
    <Modal title={t(target ? 'back-office.change' : 'back-office.add')} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field label={t('back-office.name')} required maxLength={60} value={name} onValue={setName} />
        <Field
          label={t('back-office.url')}
          type="url"
          required
          maxLength={2048}
          hint={t('back-office.url-hint')}
          value={url}
          onValue={setURL}
        />
        <Field label={t('back-office.jurisdiction')} maxLength={120} value={jurisdiction} onValue={setJurisdiction} />
        <Field
          label={t('back-office.key')}
          autoComplete="off"
          maxLength={120}
          hint={target?.has_key ? kept : undefined}
          value={key}
          onValue={setKey}
        />
        <Field
          label={t('back-office.update-key')}
          autoComplete="off"
          maxLength={120}
          hint={target?.takes_updates ? kept : t('back-office.update-key-hint')}
          value={updateKey}
          onValue={setUpdateKey}
        />
        <Field
          label={t('back-office.connection')}
          autoComplete="off"
          required={!target}
          maxLength={120}
          hint={kept ?? t('back-office.connection-hint')}
          value={connection}
          onValue={setConnection}
        />
        <fieldset class="stack">
          <legend>{t('back-office.services')}</legend>
          <small class="quiet">{t('back-office.services-hint')}</small>
          {categories.value.map((category) => (
            <Field
              key={category.id}
              label={category.name}
              maxLength={60}
              value={codes.get(category.id) ?? ''}
              onValue={(code) => setCodes(new Map(codes).set(category.id, code))}
            />
          ))}
        </fieldset>
        <Lines
          label={t('back-office.statuses')}
          class="code"
          rows={3}
          hint={t('back-office.statuses-hint')}
          value={words}
          onValue={setWords}
        />
        <Option label={t('back-office.repeats')} checked={repeats} onChange={setRepeats} />
        {target && <Option label={t('back-office.enabled')} checked={enabled} onChange={setEnabled} />}
        <Fault error={error} />
        <button class="primary">{t('back-office.save')}</button>
      </form>
    </Modal>
  );
}

const Option = ({ label, checked, onChange }: { label: string; checked: boolean; onChange(on: boolean): void }) => (
  <label class="check">
    <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
    <span>{label}</span>
  </label>
);
