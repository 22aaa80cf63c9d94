import { useEffect, useMemo, useState } from 'preact/hooks';

import { t } from '../../lang/create';
import type { Position } from '../../map/address';
import { createChoice, ofDraft } from '../../photos/choice';
import { positionOf } from '../../photos/exif';
import { TYPES } from '../../photos/picker';
import { inCity } from '../../state/config';
import { draft } from '../../state/draft';

/** Begins a report with its photo, from the camera or from files. The place of the photo is offered as the report's. */
export function Camera({ onPlace }: { onPlace(position: Position): void }) {
  const { key, position } = draft.value;
  const choice = useMemo(() => createChoice(ofDraft(key)), [key]);
  useEffect(() => choice.open(), [choice]);
  const [taken, setTaken] = useState<Position | 'none'>();
  const [photo] = choice.list.value;
  const pick = async (input: HTMLInputElement) => {
    const [file] = input.files ?? [];
    if (!file) return;
    const found = await positionOf(file).catch(() => undefined);
    await choice.add([file]);
    setTaken(found ?? 'none');
  };
  if (!photo) {
    return (
      <label class="button file">
        {t('camera.begin')}
        <input class="hidden" type="file" accept={TYPES} onChange={(event) => void pick(event.currentTarget)} />
      </label>
    );
  }
  const here = taken !== undefined && taken !== 'none' && inCity(taken) ? taken : undefined;
  return (
    <div class="bar">
      <img class="thumbnail" src={photo.preview} alt="" width={64} height={64} />
      <p role="status">
        {t('camera.added')}{' '}
        {!position && taken !== undefined && t(here ? 'camera.place' : taken === 'none' ? 'camera.none' : 'camera.outside')}
      </p>
      {here && !position && (
        <button type="button" class="primary" onClick={() => onPlace(here)}>
          {t('camera.use')}
        </button>
      )}
    </div>
  );
}
