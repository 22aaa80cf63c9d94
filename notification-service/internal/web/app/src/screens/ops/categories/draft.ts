/** The city's categories while an operator edits them: plain data, and what follows from it. */
import type { Failure, Category, CategorySettings, NewCategory, Signpost } from '../../../api/client';

export interface Text {
  name: string;
  hint: string;
  group: string;
}

export interface Row {
  /** Tells rows apart, also those that have no id yet. */
  key: string;
  id?: number;
  /** By language. */
  texts: Record<string, Text>;
  icon: string;
  accepts: boolean;
  retired: boolean;
  /** Where it is not the city's, by area. */
  signposts: Signpost[];
}

/** A field of a row, such as `icon` or `id.name`; the whole row is an empty one. */
export type Field = string;

const empty: Text = { name: '', hint: '', group: '' };

export const textIn = (row: Row, language: string): Text => row.texts[language] ?? empty;

export const keyOf = (id: number) => `c${id}`;

export function rowsOf({ categories }: CategorySettings): Row[] {
  return categories.map(({ id, texts, icon, accepts_reports, retired, signposts = [] }) => ({
    key: keyOf(id),
    id,
    texts: Object.fromEntries(texts.map(({ language, name, hint = '', group = '' }) => [language, { name, hint, group }])),
    icon,
    accepts: accepts_reports,
    retired,
    signposts,
  }));
}

/** The body of the request: the list without retired rows, which the service keeps. */
export function bodyOf(rows: Row[]): NewCategory[] {
  return rows
    .filter(({ retired }) => !retired)
    .map(({ id, texts, icon, accepts, signposts }) => ({
      ...(id && { id }),
      icon,
      accepts_reports: accepts,
      signposts,
      texts: Object.entries(texts)
        .map(([language, { name, hint, group }]) => ({ language, name: name.trim(), hint: hint.trim(), group: group.trim() }))
        .filter(({ name }) => name !== ''),
    }));
}

/** The list as residents get it in a language. */
export function previewOf(rows: Row[], language: string): Category[] {
  return rows
    .filter(({ retired }) => !retired)
    .map((row, i) => ({ id: i + 1, ...textIn(row, language), icon: row.icon, accepts_reports: row.accepts }));
}

export const sameList = (a: Row[], b: Row[]) => JSON.stringify(a.map(flat)) === JSON.stringify(b.map(flat));

/** The faults of fields, by row. The words are the page's, or else the service's own. */
export type Faults = Record<string, Record<Field, string>>;

/** Faults that an operator can correct before anything is sent. */
export function faultsOf(rows: Row[], languages: string[]): Faults {
  const faults: Faults = {};
  const names = new Set<string>();
  for (const row of rows) {
    if (row.retired) continue;
    const wrong: Record<Field, string> = {};
    for (const language of languages) {
      const { name, hint } = textIn(row, language);
      const called = `${language} ${name.trim().toLowerCase()}`;
      if (!name.trim()) wrong[`${language}.name`] = 'field.missing';
      else if (names.has(called)) wrong[`${language}.name`] = 'categories.twice';
      names.add(called);
      if (!row.accepts && !hint.trim()) wrong[`${language}.hint`] = 'categories.signpost.missing';
    }
    if (Object.keys(wrong).length > 0) faults[row.key] = wrong;
  }
  return faults;
}

const POINTER = /^\/categories\/(\d+)(?:\/(?:texts(?:\/(\d+)\/(\w+))?|(\w+)))?/;

/** The faults that the service found, at the fields of the request. */
export function refusedFields(failure: Failure, rows: Row[]): Faults {
  const faults: Faults = {};
  const sent = bodyOf(rows);
  const keys = rows.filter(({ retired }) => !retired).map(({ key }) => key);
  for (const { pointer, detail } of failure.problem?.errors ?? []) {
    const [, at, text, part, own = ''] = POINTER.exec(pointer) ?? [];
    const key = at && keys[Number(at)];
    if (!key) continue;
    const language = text && sent[Number(at)]?.texts[Number(text)]?.language;
    (faults[key] ??= {})[language ? `${language}.${part}` : own] = detail;
  }
  return faults;
}

type Flat = Record<Field, string | boolean>;

function flat({ id, texts, icon, accepts, retired, signposts }: Row): Flat {
  const fields: Flat = { id: String(id ?? ''), icon, accepts, retired, signposts: JSON.stringify(signposts) };
  for (const language of Object.keys(texts).sort()) {
    for (const part of ['name', 'hint', 'group'] as const) fields[`${language}.${part}`] = texts[language]![part];
  }
  return fields;
}

/** The row with another value of a field. */
export function withField(row: Row, field: Field, value: string | boolean): Row {
  if (field === 'signposts') return { ...row, signposts: JSON.parse(String(value)) as Signpost[] };
  const [language = '', part] = field.split('.');
  if (!part) return { ...row, [field]: value };
  return { ...row, texts: { ...row.texts, [language]: { ...textIn(row, language), [part]: value } } };
}

/** A field that two operators have changed to different values: mine is kept until theirs is chosen. */
export interface Clash {
  key: string;
  field: Field;
  theirs: string | boolean;
}

/**
 * Joins what I made of a list with what somebody else made of it: each field has the
 * value that one of us gave it, and mine if both did. The order is mine if I changed it.
 */
export function merge(base: Row[], mine: Row[], theirs: Row[]): { rows: Row[]; clashes: Clash[] } {
  const before = new Map(base.map((row) => [row.key, row]));
  const other = new Map(theirs.map((row) => [row.key, row]));
  const own = new Map(mine.map((row) => [row.key, row]));
  const clashes: Clash[] = [];
  const join = (key: string): Row => {
    const [m, b, o] = [own.get(key), before.get(key), other.get(key)];
    if (!m || !b || !o) return (m ?? o)!;
    const [was, now, then] = [flat(m), flat(b), flat(o)];
    let row = o;
    for (const field of new Set([...Object.keys(was), ...Object.keys(then)])) {
      const [value = '', first = '', second = ''] = [was[field], now[field], then[field]];
      if (value === first || value === second) continue;
      if (second !== first) clashes.push({ key, field, theirs: second });
      row = withField(row, field, value);
    }
    return row;
  };
  const known = (rows: Row[]) => rows.filter(({ key }) => before.has(key)).map(({ key }) => key);
  const reordered = known(mine).join() !== known(base).join();
  const keys = reordered
    ? [...known(mine), ...theirs.filter(({ key }) => !before.has(key)).map(({ key }) => key)]
    : theirs.map(({ key }) => key);
  // A row that was added here keeps its place behind the same row.
  mine.forEach(({ key }, i) => {
    if (before.has(key)) return;
    const behind = mine[i - 1]?.key;
    keys.splice(behind === undefined ? 0 : keys.indexOf(behind) + 1, 0, key);
  });
  return { rows: sorted(keys.map(join)), clashes };
}

/** Retired rows stand behind the others. */
export const sorted = (rows: Row[]) => [...rows.filter(({ retired }) => !retired), ...rows.filter(({ retired }) => retired)];
