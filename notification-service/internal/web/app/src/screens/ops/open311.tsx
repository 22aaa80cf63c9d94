import { useState } from 'preact/hooks';

import { must, reportService } from '../../api/client';
import { t } from '../../lang/console';
import { useAct } from '../../ui/act';
import { Field } from '../../ui/field';
import { Final } from '../../ui/final-form';
import { usePoll } from '../../ui/poll';
import { Fault } from '../../ui/problem';
import { Time } from '../../ui/time';
import { Acts } from './acts';
import { Rows } from './rows';
import { ShownOnce } from './shown-once';

const PATH = '/admin/reports/open311/keys';

interface Key {
  id: string;
  name: string;
}

/** The applications that file reports by Open311. A key is shown when it is made, and never again. */
export function Open311() {
  const found = usePoll(async () => {
    const { keys, enabled } = await must(reportService.GET(PATH));
    return { items: keys, enabled };
  });
  const [made, setMade] = useState<string>();
  const [revoking, setRevoking] = useState<Key>();
  return (
    <div class="stack narrow">
      <p class="quiet">{t('open311.hint')}</p>
      {found.value?.enabled === false && <p class="note">{t('open311.off')}</p>}
      <Rows found={found} none={t('open311.none')}>
        {(key) => (
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
        )}
      </Rows>
      <Acts>
        <Make
          onMade={(key) => {
            setMade(key);
            found.refresh();
          }}
        />
      </Acts>
      {made && <ShownOnce title={t('open311.key')} hint={t('open311.key-hint')} secret={made} onClose={() => setMade(undefined)} />}
      {revoking && (
        <Final
          title={t('open311.revoke')}
          points={[t('open311.revoke-hint', { name: revoking.name })]}
          act={() => must(reportService.DELETE(`${PATH}/{id}`, { params: { path: { id: revoking.id } } }))}
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
  const { error, submits } = useAct();
  const submit = submits(async () => {
    const { key } = await must(reportService.POST(PATH, { body: { name: name.trim() } }));
    setName('');
    onMade(key);
  });
  return (
    <form class="stack" onSubmit={submit}>
      <Field label={t('open311.name')} required maxLength={80} value={name} onValue={setName} />
      <Fault error={error} />
      <p class="bar">
        <button class="primary">{t('open311.make')}</button>
      </p>
    </form>
  );
}
