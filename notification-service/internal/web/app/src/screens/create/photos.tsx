import { useEffect, useMemo } from 'preact/hooks';

import { t } from '../../lang/i18n';
import { createChoice, MAX_PHOTOS, ofDraft } from '../../photos/choice';
import { Picker } from '../../photos/picker';
import { draft } from '../../state/draft';

/** Photos, if there are any; they are sent once the report is filed. */
export function Photos() {
  const { key } = draft.value;
  const choice = useMemo(() => createChoice(ofDraft(key)), [key]);
  useEffect(() => choice.open(), [choice]);
  return (
    <fieldset class="choices">
      <legend>{t('new.photos')}</legend>
      <Picker choice={choice} free={MAX_PHOTOS} />
    </fieldset>
  );
}
