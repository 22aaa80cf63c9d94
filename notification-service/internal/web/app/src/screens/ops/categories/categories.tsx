import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { must, reportService, type Category, type CategoryChange } from '../../../api/client';
import { language, number, t } from '../../../lang/console';
import { useEdited } from '../../../state/setting';
import { toast } from '../../../state/toasts';
import { categoryIcon } from '../../../ui/category';
import { Icon } from '../../../ui/icons';
import { Fault } from '../../../ui/problem';
import { Time } from '../../../ui/time';
import { CategoryChoice } from '../../create/category';
import { Acts, readsOnly } from '../acts';
import { actorName } from '../audit';
import { previewOf, textIn, type Clash, type Row } from './draft';
import { createEditor } from './editor';
import { CategoryFields, languageName } from './fields';
import { useDrag } from './use-drag';

const editor = createEditor();

/** The name of a row here: in the first of the city's languages that it has a name in. */
const nameOf = (row: Row) => editor.languages.value.map((each) => textIn(row, each).name.trim()).find(Boolean) || t('categories.unnamed');

/** The city's categories: what they are called, in which order they stand, and what residents see of them. All is saved together. */
export function Categories() {
  const [saved, setSaved] = useState(0);
  /** How often saving did not work. */
  const [tried, setTried] = useState(0);
  useEdited(editor);
  if (!editor.loaded.value) return <Fault error={editor.error.value} retry={() => void editor.load()} />;
  const save = async (event: Event) => {
    event.preventDefault();
    if (!(await editor.save())) return setTried(tried + 1);
    setSaved(saved + 1);
    toast(t('categories.saved'));
  };
  return (
    <div class="category-editor">
      <form class="stack" noValidate onSubmit={(event) => void save(event)}>
        <p class="quiet">{t('categories.hint')}</p>
        <List tried={tried} />
        <Retired />
        {editor.stale.value && <Stale />}
        {editor.clashes.value.length > 0 && <Clashes />}
        {Object.values(editor.faults.value).some((fields) => Object.keys(fields).length > 0) && (
          <p class="fault" role="alert">
            {t('categories.wrong')}
          </p>
        )}
        <Fault error={editor.error.value} />
        <Acts>
          <p class="bar">
            <button class="primary" disabled={!editor.changed.value || editor.saving.value}>
              {t('categories.save')}
            </button>
            {editor.changed.value && (
              <button type="button" class="link" onClick={() => void editor.discard()}>
                {t('edited.discard')}
              </button>
            )}
          </p>
        </Acts>
      </form>
      <Preview />
      <Changes key={saved} />
    </div>
  );
}

function List({ tried }: { tried: number }) {
  const [open, setOpen] = useState<string>();
  const [said, setSaid] = useState('');
  const list = useRef<HTMLOListElement | null>(null);
  const rows = editor.rows.value.filter(({ retired }) => !retired);
  const drag = useDrag(list, (key, to) => editor.move(key, to));
  // A row that is moved in the document loses the focus.
  const focus = useRef('');
  useLayoutEffect(() => {
    if (focus.current) list.current?.querySelector<HTMLElement>(focus.current)?.focus();
    focus.current = '';
  });
  // A field that nobody sees cannot be corrected.
  useEffect(() => {
    const wrong = rows.find(({ key }) => Object.keys(editor.faults.value[key] ?? {}).length > 0)?.key;
    if (!wrong) return;
    focus.current = `[data-key="${wrong}"] [aria-invalid=true]`;
    setOpen(wrong);
    list.current?.querySelector<HTMLElement>(focus.current)?.focus(); // where it is open already
  }, [tried]);
  const move = (row: Row, to: number, by: 'up' | 'down') => {
    if (to < 0 || to >= rows.length) return;
    focus.current = `[data-key="${row.key}"] [data-move=${by}]`;
    editor.move(row.key, to);
    setSaid(t('categories.placed', { name: nameOf(row), place: number(to + 1), count: number(rows.length) }));
  };
  return (
    <>
      <ol class="ordered" ref={list} aria-label={t('categories')}>
        {rows.map((row, i) => {
          const name = nameOf(row);
          return (
            <li key={row.key} class="panel stack" data-key={row.key} data-dragged={drag.dragged === row.key}>
              <div class="ordered-row">
                <Acts>
                  <span class="grip" aria-hidden="true" onPointerDown={(event) => drag.start(event, row.key)}>
                    <Icon name="list" />
                  </span>
                </Acts>
                <Icon name={categoryIcon(row.icon)} />
                <span class="ordered-name">
                  <strong>{name}</strong>
                  <small class="quiet">
                    {[textIn(row, editor.languages.value[0]!).group, !row.accepts && t('categories.signpost.short')]
                      .filter(Boolean)
                      .join(' · ')}
                  </small>
                </span>
                <Acts>
                  <button
                    type="button"
                    class="plain"
                    data-move="up"
                    aria-label={t('categories.up', { name })}
                    aria-disabled={i === 0}
                    onClick={() => move(row, i - 1, 'up')}
                  >
                    <Icon name="up" />
                  </button>
                  <button
                    type="button"
                    class="plain"
                    data-move="down"
                    aria-label={t('categories.down', { name })}
                    aria-disabled={i === rows.length - 1}
                    onClick={() => move(row, i + 1, 'down')}
                  >
                    <Icon name="down" />
                  </button>
                </Acts>
                <button
                  type="button"
                  aria-expanded={open === row.key}
                  aria-label={t(readsOnly() ? 'categories.look.at' : 'categories.edit.of', { name })}
                  onClick={() => setOpen(open === row.key ? undefined : row.key)}
                >
                  {t(readsOnly() ? 'categories.look' : 'categories.edit')}
                </button>
              </div>
              {open === row.key && <CategoryFields editor={editor} row={row} />}
            </li>
          );
        })}
      </ol>
      <p class="hidden" role="status">
        {said}
      </p>
      <Acts>
        <p>
          <button
            type="button"
            onClick={() => {
              const key = editor.add();
              focus.current = `[data-key="${key}"] input`;
              setOpen(key);
            }}
          >
            {t('categories.add')}
          </button>
        </p>
      </Acts>
    </>
  );
}

function Retired() {
  const retired = editor.rows.value.filter((row) => row.retired);
  if (retired.length === 0) return null;
  return (
    <details>
      <summary>
        {t('categories.retired')} ({number(retired.length)})
      </summary>
      <ul class="rows">
        {retired.map((row) => (
          <li key={row.key}>
            <span>{nameOf(row)}</span>
            <Acts>
              <button type="button" class="link" onClick={() => editor.bringBack(row.key)}>
                {t('categories.bring-back', { name: nameOf(row) })}
              </button>
            </Acts>
          </li>
        ))}
      </ul>
    </details>
  );
}

function Stale() {
  return (
    <div class="note stack" role="alert">
      <p>{t('categories.stale')}</p>
      <p class="bar">
        <button type="button" class="primary" onClick={() => void editor.takeOver()}>
          {t('categories.take-over')}
        </button>
        <button type="button" class="danger-quiet" onClick={() => void editor.discard()}>
          {t('categories.discard-mine')}
        </button>
      </p>
    </div>
  );
}

function Clashes() {
  return (
    <div class="note stack" role="status">
      <p>{t('categories.clashes')}</p>
      <ul>
        {editor.clashes.value.map((clash) => (
          <li key={`${clash.key} ${clash.field}`}>
            <ClashOf clash={clash} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function ClashOf({ clash }: { clash: Clash }) {
  const row = editor.rows.value.find(({ key }) => key === clash.key);
  const { theirs } = clash;
  return (
    <>
      {row && nameOf(row)}, {fieldName(clash.field)}:{' '}
      <q>{theirs === true ? t('categories.yes') : theirs === false ? t('categories.no') : theirs || t('categories.empty')}</q>{' '}
      <button type="button" class="link" onClick={() => editor.useTheirs(clash)}>
        {t('categories.use-theirs')}
      </button>
    </>
  );
}

/** The name of a field where it is not to be seen. */
function fieldName(field: string): string {
  const [first = '', part] = field.split('.');
  if (part === 'name') return t('categories.name', { language: languageName(first) });
  if (part === 'hint') return t('categories.text-hint', { language: languageName(first) });
  if (part === 'group') return t('categories.group', { language: languageName(first) });
  if (field === 'icon') return t('categories.icon');
  if (field === 'signposts') return t('categories.places');
  return field === 'retired' ? t('categories.retired') : t('categories.signpost.short');
}

/** The list as residents see it once this is saved. It is tried out here, and nothing is filed. */
function Preview() {
  const [shown, setShown] = useState<string>();
  const [chosen, setChosen] = useState<number>();
  const languages = editor.languages.value;
  const named = (category: Category) => ({ ...category, name: category.name.trim() || t('categories.unnamed') });
  const tag = shown ?? (languages.includes(language.value) ? language.value : languages[0]!);
  return (
    <section class="panel stack" aria-labelledby="preview">
      <h2 id="preview">{t('categories.preview')}</h2>
      {languages.length > 1 && (
        <fieldset class="choices">
          <legend class="hidden">{t('language')}</legend>
          {languages.map((each) => (
            <label key={each} class="chip">
              <input type="radio" name="preview" checked={each === tag} onChange={() => setShown(each)} />
              <span>{languageName(each)}</span>
            </label>
          ))}
        </fieldset>
      )}
      <div class="stack" lang={tag}>
        <CategoryChoice all={previewOf(editor.rows.value, tag).map(named)} chosen={chosen} onChoose={setChosen} />
      </div>
    </section>
  );
}

/** The people who replaced the list, and how much that changed. */
function Changes() {
  const [changes, setChanges] = useState<CategoryChange[]>();
  const [error, setError] = useState<unknown>();
  const read = () => {
    setError(undefined);
    must(reportService.GET('/reports/categories/changes')).then((found) => setChanges(found.changes), setError);
  };
  useEffect(read, []);
  return (
    <section class="stack" aria-labelledby="changes">
      <h2 id="changes">{t('categories.changes')}</h2>
      <Fault error={error} retry={read} />
      {changes?.length === 0 && <p class="quiet">{t('categories.changes.none')}</p>}
      <ul class="rows">
        {changes?.map(({ at, actor, actor_name, added, changed, retired }) => (
          <li key={at}>
            <p class="meta">
              <Time at={at} full />
              <span>{actorName(actor, actor_name)}</span>
              <span>{t('categories.changes.counts', { added: number(added), changed: number(changed), retired: number(retired) })}</span>
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}
