import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

import { t } from '../../lang/console';
import { useAct } from '../../ui/act';
import { Field } from '../../ui/field';
import { Final } from '../../ui/final-form';
import type { Polled } from '../../ui/poll';
import { Fault } from '../../ui/problem';
import { Time } from '../../ui/time';
import { Acts } from './acts';
import { Rows } from './rows';
import { ShownOnce } from './shown-once';

interface Key {
  id: string;
  name: string;
  made_at: string;
  revoked_at?: string;
}

interface Props<K extends Key> {
  /** Said where there are none, of the name, of a new key, and before one is revoked. */
  words: { none: string; name: string; shown: string; revoke(name: string): string };
  found: Polled<{ items: K[] }>;
  /** More about a key. */
  about(key: K): ComponentChildren;
  make(name: string): Promise<{ key: string }>;
  revoke(id: string): Promise<unknown>;
  /** Further fields of a new key. */
  children?: ComponentChildren;
}

/** Keys of machines. One is shown when it is made, and never again. */
export function Keys<K extends Key>({ words, found, about, make, revoke, children }: Props<K>) {
  const [made, setMade] = useState<string>();
  const [revoking, setRevoking] = useState<Key>();
  const [name, setName] = useState('');
  const { error, submits } = useAct();
  const submit = submits(async () => {
    const { key } = await make(name.trim());
    setName('');
    setMade(key);
    found.refresh();
  });
  return (
    <>
      <Rows found={found} none={words.none}>
        {(key) => (
          <li key={key.id}>
            <div>
              <strong>{key.name}</strong>
              <p class="meta">
                {about(key)}
                <span>
                  {t('keys.made')} <Time at={key.made_at} full />
                </span>
                {key.revoked_at && (
                  <span>
                    {t('keys.revoked')} <Time at={key.revoked_at} full />
                  </span>
                )}
              </p>
            </div>
            {!key.revoked_at && (
              <Acts>
                <button type="button" class="danger-quiet" aria-haspopup="dialog" onClick={() => setRevoking(key)}>
                  {t('keys.revoke')}
                </button>
              </Acts>
            )}
          </li>
        )}
      </Rows>
      <Acts>
        <form class="stack" onSubmit={submit}>
          <Field label={words.name} required maxLength={80} value={name} onValue={setName} />
          {children}
          <Fault error={error} />
          <p class="bar">
            <button class="primary">{t('keys.make')}</button>
          </p>
        </form>
      </Acts>
      {made && <ShownOnce title={t('keys.key')} hint={words.shown} secret={made} onClose={() => setMade(undefined)} />}
      {revoking && (
        <Final
          title={t('keys.revoke')}
          points={[words.revoke(revoking.name)]}
          act={() => revoke(revoking.id)}
          onClose={() => {
            setRevoking(undefined);
            found.refresh();
          }}
        />
      )}
    </>
  );
}
