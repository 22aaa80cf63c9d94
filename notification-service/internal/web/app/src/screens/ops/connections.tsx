import { useState } from 'preact/hooks';

import { must, reportService } from '../../api/client';
import { t } from '../../lang/console';
import { Choice } from '../../ui/field';
import { usePoll } from '../../ui/poll';
import { Keys } from './keys';

const PATH = '/admin/reports/connections';

/** The systems of departments that work on their reports. */
export function Connections() {
  const found = usePoll(async () => {
    const [{ connections }, { departments }] = await Promise.all([
      must(reportService.GET(PATH)),
      must(reportService.GET('/reports/departments')),
    ]);
    return { items: connections, departments };
  });
  const [department, setDepartment] = useState('');
  const [isPrivate, setPrivate] = useState(false);
  return (
    <div class="stack narrow">
      <p class="quiet">{t('connections.hint')}</p>
      {found.value?.departments.length === 0 && <p class="note">{t('connections.no-department')}</p>}
      <Keys
        words={{
          none: t('connections.none'),
          name: t('connections.name'),
          shown: t('connections.key-hint'),
          revoke: (name) => t('connections.revoke-hint', { name }),
        }}
        found={found}
        about={(connection) => (
          <>
            <span>{connection.department_name ?? t('connections.gone')}</span>
            {connection.private && <span>{t('connections.private')}</span>}
          </>
        )}
        make={(name) => must(reportService.POST(PATH, { body: { name, department_id: Number(department), private: isPrivate } }))}
        revoke={(id) => must(reportService.DELETE(`${PATH}/{id}`, { params: { path: { id } } }))}
      >
        <Choice
          label={t('work.department')}
          required
          value={department}
          none="–"
          options={(found.value?.departments ?? []).map(({ id, name }) => [id, name])}
          onValue={setDepartment}
        />
        <label class="check">
          <input type="checkbox" checked={isPrivate} onChange={(event) => setPrivate(event.currentTarget.checked)} />
          <span>{t('connections.private')}</span>
        </label>
      </Keys>
    </div>
  );
}
