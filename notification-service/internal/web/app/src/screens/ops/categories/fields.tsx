import { isWord, language, t } from '../../../lang/console';
import { CATEGORY_ICONS } from '../../../ui/category';
import { Icon } from '../../../ui/icons';
import { Acts, Fields } from '../acts';
import { SignpostFields } from './signposts';
import { textIn, type Row, type Text } from './draft';
import type { Editor } from './editor';

export const languageName = (tag: string) => new Intl.DisplayNames([language.value], { type: 'language' }).of(tag) ?? tag;

/** As much as the service takes. */
const MAX: Record<keyof Text, number> = { name: 80, hint: 500, group: 80 };

/** All of one category, each fault at its field. */
export function CategoryFields({ editor, row }: { editor: Editor; row: Row }) {
  return (
    <div class="stack category-fields">
      <Fields>
        {editor.languages.value.map((tag) => (
          <fieldset key={tag} class="bare stack" lang={tag}>
            <legend class="hidden">{languageName(tag)}</legend>
            <TextField editor={editor} row={row} tag={tag} part="name" label={t('categories.name', { language: languageName(tag) })} />
            <TextField editor={editor} row={row} tag={tag} part="hint" label={t('categories.text-hint', { language: languageName(tag) })} />
            <TextField editor={editor} row={row} tag={tag} part="group" label={t('categories.group', { language: languageName(tag) })} />
          </fieldset>
        ))}
        <fieldset class="choices">
          <legend>{t('categories.icon')}</legend>
          {CATEGORY_ICONS.map((name) => (
            <label key={name} class="chip" title={t(`categories.icon.${name}`)}>
              <input
                type="radio"
                name={`icon-${row.key}`}
                aria-label={t(`categories.icon.${name}`)}
                checked={row.icon === name}
                onChange={() => editor.set(row.key, 'icon', name)}
              />
              <Icon name={name} />
            </label>
          ))}
          <Said editor={editor} row={row} field="icon" />
        </fieldset>
        <label class="check">
          <input
            type="checkbox"
            checked={!row.accepts}
            onChange={(event) => editor.set(row.key, 'accepts', !event.currentTarget.checked)}
          />
          {t('categories.signpost')}
        </label>
        <SignpostFields editor={editor} row={row} />
        <Said editor={editor} row={row} field="signposts" />
        <Said editor={editor} row={row} field="" />
      </Fields>
      <Acts>
        <p>
          <button type="button" class="danger-quiet" onClick={() => editor.retire(row.key)}>
            {t(row.id ? 'categories.retire' : 'categories.remove')}
          </button>
        </p>
      </Acts>
    </div>
  );
}

interface FieldProps {
  editor: Editor;
  row: Row;
  tag: string;
  part: keyof Text;
  label: string;
}

function TextField({ editor, row, tag, part, label }: FieldProps) {
  const field = `${tag}.${part}`;
  const id = `${row.key}-${tag}-${part}`;
  const wrong = faultAt(editor, row, field);
  const groups = part === 'group' && [...new Set(editor.rows.value.map((each) => textIn(each, tag).group))].filter(Boolean);
  return (
    <label class="field">
      <span>{label}</span>
      <input
        maxLength={MAX[part]}
        autocomplete="off"
        required={part === 'name'}
        aria-invalid={wrong !== undefined}
        aria-describedby={wrong && id}
        list={groups ? `groups-${row.key}-${tag}` : undefined}
        value={textIn(row, tag)[part]}
        onInput={(event) => editor.set(row.key, field, event.currentTarget.value)}
      />
      {groups && (
        <datalist id={`groups-${row.key}-${tag}`}>
          {groups.map((group) => (
            <option key={group} value={group} />
          ))}
        </datalist>
      )}
      <Said editor={editor} row={row} field={field} id={id} />
    </label>
  );
}

function faultAt(editor: Editor, row: Row, field: string): string | undefined {
  return editor.faults.value[row.key]?.[field];
}

/** The service explains in its own words what the page does not see to before. */
function Said({ editor, row, field, id }: { editor: Editor; row: Row; field: string; id?: string }) {
  const wrong = faultAt(editor, row, field);
  if (!wrong) return null;
  return (
    <small class="fault" id={id}>
      {isWord(wrong) ? t(wrong) : wrong}
    </small>
  );
}
