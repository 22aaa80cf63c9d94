import { useRef, useState } from 'preact/hooks';

import { t } from '../lang/i18n';
import type { Choice } from './choice';

/** The types that the service takes; where it says so, telephones make JPEG of their own formats. */
export const TYPES = 'image/jpeg,image/png,image/webp';

/**
 * Chooses as many pictures as are free, from the camera or from files, and says what
 * they show. Without a hint it says what is taken out of them only once there are some.
 */
export function Picker({
  choice,
  free,
  hint = true,
  label = t('photos.add'),
}: {
  choice: Choice;
  free: number;
  hint?: boolean;
  label?: string;
}) {
  const [working, setWorking] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const chosen = choice.list.value;
  const pick = async () => {
    const files = Array.from(input.current?.files ?? []).slice(0, free - chosen.length);
    input.current!.value = ''; // the same file may be chosen again
    setWorking(true);
    await choice.add(files);
    setWorking(false);
  };
  return (
    <>
      {chosen.length > 0 && (
        <ul class="thumbnails chosen">
          {chosen.map(({ id, preview, quarters, alt }, i) => (
            <li key={id}>
              <img src={preview} alt={alt || t('photos.numbered', { n: String(i + 1) })} data-quarters={quarters} />
              <label class="field">
                <span>{t('photos.alt')}</span>
                <input maxLength={300} value={alt} onChange={(e) => choice.change(id, { alt: e.currentTarget.value.trim() })} />
              </label>
              <div class="bar">
                <button
                  type="button"
                  aria-label={`${t('photos.rotate')}: ${t('photos.numbered', { n: String(i + 1) })}`}
                  onClick={() => choice.change(id, { quarters: (quarters + 1) % 4 })}
                >
                  {t('photos.rotate')}
                </button>
                <button
                  type="button"
                  class="link"
                  aria-label={`${t('photos.remove')}: ${t('photos.numbered', { n: String(i + 1) })}`}
                  onClick={() => choice.drop(id)}
                >
                  {t('photos.remove')}
                </button>
              </div>
            </li>
          ))}
        </ul>
      )}
      {chosen.length < free && (
        <label class="button file">
          {label}
          <input ref={input} class="hidden" type="file" accept={TYPES} multiple disabled={working} onChange={() => void pick()} />
        </label>
      )}
      <div role="status">{working && <p class="note">{t('photos.stage.resizing')}</p>}</div>
      {(hint || chosen.length > 0) && <small class="quiet">{t('photos.bare')}</small>}
    </>
  );
}
