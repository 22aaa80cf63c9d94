/**
 * The city's categories as an operator edits them. They are kept while the page is open:
 * who looks at another screen of the console loses nothing.
 */
import { computed, signal } from '@preact/signals';

import { Failure, must, reportService, type CategorySettings } from '../../../api/client';
import { loadCategories } from '../../../state/categories';
import {
  bodyOf,
  faultsOf,
  merge,
  refusedFields,
  rowsOf,
  sameList,
  sorted,
  withField,
  type Clash,
  type Faults,
  type Field,
  type Row,
} from './draft';

export function createEditor() {
  const languages = signal<string[]>([]);
  /** The list that was read, which is edited. */
  const base = signal<Row[]>();
  const rows = signal<Row[]>([]);
  const error = signal<unknown>();
  const faults = signal<Faults>({});
  /** Whether somebody else has replaced the list since it was read. */
  const stale = signal(false);
  const clashes = signal<Clash[]>([]);
  const saving = signal(false);
  let tag = '';
  let added = 0;

  const ask = async (answer: Promise<{ data?: CategorySettings; error?: unknown; response: Response }>) => {
    const settings = await must(
      answer.then((got) => {
        // A gateway that compresses an answer makes its tag weak; the list is the same.
        if (got.response.ok) tag = (got.response.headers.get('ETag') ?? '*').replace(/^W\//, '');
        return got;
      }),
    );
    languages.value = settings.languages;
    return rowsOf(settings);
  };
  const get = () => ask(reportService.GET('/reports/categories'));
  const show = (read: Row[]) => {
    base.value = rows.value = read;
    error.value = undefined;
    faults.value = {};
    clashes.value = [];
    stale.value = false;
  };
  const fail = (failure: unknown) => void (error.value = failure);
  const put = (key: string, change: (row: Row) => Row) => {
    rows.value = rows.value.map((row) => (row.key === key ? change(row) : row));
  };
  /** Takes a fault away from a field that is being corrected. */
  const forgive = (key: string, field: Field) => {
    const { [field]: _, ...others } = faults.value[key] ?? {};
    faults.value = { ...faults.value, [key]: others };
  };

  return {
    languages,
    rows,
    error,
    faults,
    stale,
    clashes,
    saving,
    loaded: computed(() => base.value !== undefined),
    changed: computed(() => base.value !== undefined && !sameList(base.value, rows.value)),

    /** Reads the list, unless one is being edited. */
    load: () => (base.value && !sameList(base.value, rows.value) ? Promise.resolve() : get().then(show, fail)),
    discard: () => get().then(show, fail),
    /** Joins what somebody else made of the list with what is here; nothing of this is lost. */
    async takeOver() {
      try {
        const theirs = await get();
        const merged = merge(base.value ?? [], rows.value, theirs);
        show(theirs);
        rows.value = merged.rows;
        clashes.value = merged.clashes;
      } catch (failure) {
        fail(failure);
      }
    },
    useTheirs({ key, field, theirs }: Clash) {
      put(key, (row) => withField(row, field, theirs));
      clashes.value = clashes.value.filter((clash) => clash.key !== key || clash.field !== field);
    },

    set(key: string, field: Field, value: string | boolean) {
      put(key, (row) => withField(row, field, value));
      forgive(key, field);
    },
    /** Moves a category to a place among those that are in use. */
    move(key: string, to: number) {
      const row = rows.value.find((each) => each.key === key);
      const others = rows.value.filter((each) => each.key !== key);
      if (row) rows.value = [...others.slice(0, to), row, ...others.slice(to)];
    },
    /** Adds an empty category behind the others, and returns its key. */
    add(): string {
      const key = `new${++added}`;
      rows.value = sorted([...rows.value, { key, texts: {}, icon: 'dots', accepts: true, retired: false, signposts: [] }]);
      return key;
    },
    /** Retires a category; one that nobody else has seen is gone. */
    retire(key: string) {
      rows.value = sorted(
        rows.value.filter(({ key: each, id }) => each !== key || id).map((row) => (row.key === key ? { ...row, retired: true } : row)),
      );
    },
    bringBack(key: string) {
      put(key, (row) => ({ ...row, retired: false }));
      rows.value = sorted(rows.value);
    },

    /** Saves the list; resolves to whether it was saved. */
    async save(): Promise<boolean> {
      faults.value = faultsOf(rows.value, languages.value);
      error.value = undefined;
      if (Object.keys(faults.value).length > 0 || saving.value) return false;
      saving.value = true;
      try {
        const params = { header: { 'If-Match': tag } };
        show(await ask(reportService.PUT('/reports/categories', { params, body: { categories: bodyOf(rows.value) } })));
        loadCategories().catch(() => {}); // for the lists of this page
        return true;
      } catch (failure) {
        if (failure instanceof Failure && failure.problem?.status === 412) stale.value = true;
        else fail(failure);
        if (failure instanceof Failure) faults.value = refusedFields(failure, rows.value);
        return false;
      } finally {
        saving.value = false;
      }
    },
  };
}

export type Editor = ReturnType<typeof createEditor>;
