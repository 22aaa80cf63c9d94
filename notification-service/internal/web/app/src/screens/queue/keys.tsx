import { t, type Word } from '../../lang/queue';
import { preferences } from '../../state/preferences';
import { Modal } from '../../ui/modal';

const KEYS: [keys: string[], does: Word][] = [
  [['j', '↓'], 'work.key.next'],
  [['k', '↑'], 'work.key.previous'],
  [['Enter', 'o'], 'work.key.open'],
  [['x', 'Space'], 'work.key.select'],
  [['Shift ↓', 'Shift ↑'], 'work.key.range'],
  [['Ctrl a'], 'work.key.all'],
  [['m'], 'work.key.move'],
  [['a'], 'work.key.assign'],
  [['e'], 'work.key.correct'],
  [['n'], 'work.key.note'],
  [['q'], 'work.key.ask'],
  [['p'], 'work.key.photo'],
  [['1', '…', '9'], 'work.key.template'],
  [['u'], 'work.key.undo'],
  [['f'], 'work.key.intake'],
  [['v'], 'work.key.views'],
  [['/'], 'work.key.search'],
  [['Esc'], 'work.key.back'],
  [['?'], 'work.key.help'],
];

/** What the keys of the workbench do, and a way to switch single letters off. */
export function KeysDialog({ onClose }: { onClose(): void }) {
  return (
    <Modal title={t('work.keys')} onClose={onClose}>
      <dl class="keys-list">
        {KEYS.map(([keys, does]) => (
          <div key={does}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{t(does)}</dd>
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
