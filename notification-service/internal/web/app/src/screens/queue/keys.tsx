import { t } from '../../lang/queue';
import { preferences } from '../../state/preferences';
import { Modal } from '../../ui/modal';
import { ROWS } from './commands';

/** The keys of the desk, and a switch for those of a single letter. */
export function KeysDialog({ onClose }: { onClose(): void }) {
  return (
    <Modal title={t('work.keys')} onClose={onClose}>
      <dl class="keys-list">
        {ROWS.map(({ key = '', keys = [key], help }) => (
          <div key={help}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{t(help)}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={preferences.shortcuts.value === 'on'}
          onChange={(event) => (preferences.shortcuts.value = event.currentTarget.checked ? 'on' : 'off')}
        />
        {t('work.keys-on')}
      </label>
    </Modal>
  );
}
