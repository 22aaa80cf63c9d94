import { t } from '../lang/i18n';
import type { Edited } from '../state/setting';

/** The way back to what is saved, while something is changed; and that somebody else has saved it differently. */
export function Discard({ edited }: { edited: Pick<Edited<unknown>, 'changed' | 'stale' | 'discard'> }) {
  if (!edited.changed.value) return null;
  return (
    <>
      <button type="button" class="link" onClick={() => void edited.discard()}>
        {t('edited.discard')}
      </button>
      {edited.stale.value && (
        <span class="fault" role="status">
          {t('edited.stale')}
        </span>
      )}
    </>
  );
}
