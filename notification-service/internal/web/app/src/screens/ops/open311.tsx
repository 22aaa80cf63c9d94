import { useState } from 'preact/hooks';

import { must, reportService } from '../../api/client';
import { t } from '../../lang/console';
import { Modal } from '../../ui/modal';
import { usePoll } from '../../ui/poll';
import { Fault } from '../../ui/problem';
import { Time } from '../../ui/time';
import { Acts } from './acts';
import { Waiting } from './waiting';

const PATH = '/admin/reports/open311/keys';

interface Key {
  id: string;
  name: string;
}

/** The applications that file reports by Open311. A key is shown when it is made, and never again. */
export function Open311() {
  const found = usePoll(() => must(reportService.GET(PATH)));
  const [made, setMade] = useState<string>();
  const [revoking, setRevoking] = useState<Key>();
  return (
    <div class="stack narrow">
      <p class="quiet">{t('open311.hint')}</p>
      {found.value?.enabled === false && <p class="note">{t('open311.off')}</p>}
      {found.value ? <Fault error={found.error} retry={found.refresh} /> : <Waiting error={found.error} retry={found.refresh} />}
      {found.value?.keys.length === 0 && <p class="empty">{t('open311.none')}</p>}
      <ul class="rows">
        {found.value?.keys.map((key) => (
          <li key={key.id}>
            <div>
              <strong>{key.name}</strong>
              <p class="meta">
                <span>{t('open311.reports', { count: key.reports })}</span>
                <span>
                  {t('open311.made')} <Time at={key.made_at} full />
                </span>
                {key.revoked_at && (
                  <span>
                    {t('open311.revoked')} <Time at={key.revoked_at} full />
                  </span>
                )}
              </p>
            </div>
            {!key.revoked_at && (
              <Acts>
                <button type="button" class="danger-quiet" aria-haspopup="dialog" onClick={() => setRevoking(key)}>
                  {t('open311.revoke')}
                </button>
              </Acts>
            )}
          </li>
        ))}
      </ul>
      <Acts>
        <Make
          onMade={(key) => {
            setMade(key);
            found.refresh();
          }}
        />
      </Acts>
      {made && <Shown value={made} onClose={() => setMade(undefined)} />}
      {revoking && (
        <Revoke
          of={revoking}
          onClose={() => {
            setRevoking(undefined);
            found.refresh();
          }}
        />
      )}
    </div>
  );
}

function Make({ onMade }: { onMade(key: string): void }) {
  const [name, setName] = useState('');
  const [error, setError] = useState<unknown>();
  const submit = (event: Event) => {
    event.preventDefault();
    must(reportService.POST(PATH, { body: { name: name.trim() } })).then(({ key }) => {
      setName('');
      setError(undefined);
      onMade(key);
    }, setError);
  };
  return (
    <form class="stack" onSubmit={submit}>
      <label class="field">
        <span>{t('open311.name')}</span>
        <input required maxLength={80} pattern=".*\S.*" value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <Fault error={error} />
      <p class="bar">
        <button class="primary">{t('open311.make')}</button>
      </p>
    </form>
  );
}

function Shown({ value, onClose }: { value: string; onClose(): void }) {
  const [copied, setCopied] = useState(false);
  const [error, setError] = useState<unknown>();
  return (
    <Modal title={t('open311.key')} onClose={onClose}>
      <div class="stack">
        <p>{t('open311.key-hint')}</p>
        <label class="field">
          <span>{t('open311.key')}</span>
          <input class="code" readOnly value={value} onFocus={(event) => event.currentTarget.select()} />
        </label>
        <p role="status" class="quiet">
          {copied && t('webhooks.copied')}
        </p>
        <Fault error={error} />
        <p class="bar">
          <button
            type="button"
            class="primary"
            onClick={() => void navigator.clipboard.writeText(value).then(() => setCopied(true), setError)}
          >
            {t('webhooks.copy')}
          </button>
        </p>
      </div>
    </Modal>
  );
}

function Revoke({ of, onClose }: { of: Key; onClose(): void }) {
  const [error, setError] = useState<unknown>();
  const revoke = () => must(reportService.DELETE(`${PATH}/{id}`, { params: { path: { id: of.id } } })).then(onClose, setError);
  return (
    <Modal title={t('open311.revoke')} onClose={onClose}>
      <div class="stack">
        <p>{t('open311.revoke-hint', { name: of.name })}</p>
        <Fault error={error} />
        <p class="bar">
          <button type="button" class="danger" onClick={() => void revoke()}>
            {t('open311.revoke')}
          </button>
        </p>
      </div>
    </Modal>
  );
}
