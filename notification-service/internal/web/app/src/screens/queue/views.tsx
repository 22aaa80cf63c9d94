import { useEffect, useRef, useState } from 'preact/hooks';

import type { View } from '../../api/client';
import { number, t } from '../../lang/queue';
import { NO_FILTERS } from '../../state/filters';
import { changeViews, MAX_VIEWS, readViews } from '../../state/views';
import { useAct } from '../../ui/act';
import { Field } from '../../ui/field';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { setQuery } from '../../ui/router';
import { columnsWithout, HEADINGS, OPTIONAL_COLUMNS } from './table';

/** The part of the address that makes a view. */
const NOTHING: Record<string, string> = { ...NO_FILTERS, status: '', order: '', without: '' };

/** The filters in an address, without all else that it has, in a fixed order. */
export function viewOf(query: URLSearchParams): string {
  const chosen = Object.keys(NOTHING).flatMap((name) => (query.get(name) ? [[name, query.get(name)!]] : []));
  return new URLSearchParams(chosen).toString();
}

/** The views that everybody has, with the columns that are shown now. */
function builtIn(filters: string): View[] {
  const without = new URLSearchParams(filters).get('without') ?? '';
  const yesterday = new Date();
  yesterday.setDate(yesterday.getDate() - 1);
  const day = [yesterday.getFullYear(), yesterday.getMonth() + 1, yesterday.getDate()]
    .map((part) => String(part).padStart(2, '0'))
    .join('-');
  return [
    { name: t('work.views.mine'), filters: viewOf(new URLSearchParams({ status: 'all', assignee: 'me', without })) },
    { name: t('work.views.new'), filters: viewOf(new URLSearchParams({ status: 'all', from: day, without })) },
  ];
}

/** Shows what a view asks for, and nothing that was asked for before. */
function pick(filters: string): void {
  setQuery({ ...NOTHING, ...Object.fromEntries([...new URLSearchParams(filters)].filter(([name]) => name in NOTHING)), report: '' });
}

interface Props {
  /** The present filters. */
  filters: string;
  onClose(): void;
}

/** The reader's views of the queue: to pick one, to name the present filters, and to rename and delete. */
export function ViewsDialog({ filters, onClose }: Props) {
  const [views, setViews] = useState<View[]>();
  const { busy, error, setError, run, submits } = useAct();
  const [renamed, setRenamed] = useState<string>();
  const [name, setName] = useState('');
  const list = useRef<HTMLUListElement>(null);
  const read = () => {
    setError(undefined);
    readViews().then(setViews, setError);
  };
  useEffect(read, []);

  const change = async (how: (views: View[]) => View[]) => {
    setViews(await changeViews(how));
    setRenamed(undefined);
    setName('');
    // The element that had the focus may be gone.
    list.current?.focus();
  };
  const isTaken = (wanted: string) => views?.some((view) => view.name === wanted.trim()) ?? false;
  const submit = submits(() => change((all) => [...all, { name: name.trim(), filters }]));
  return (
    <Modal title={t('work.views')} onClose={onClose}>
      <div class="stack" aria-busy={busy || (!views && !error)}>
        <ul class="rows views-list" ref={list} tabIndex={-1} aria-label={t('work.views')}>
          {[...builtIn(filters), ...(views ?? [])].map((view, i) => (
            <li key={`${i < 2} ${view.name}`}>
              {renamed === view.name && i >= 2 ? (
                <Rename
                  name={view.name}
                  isTaken={isTaken}
                  onName={(to) =>
                    void run(() => change((all) => all.map((each) => (each.name === view.name ? { ...each, name: to } : each))))
                  }
                  onCancel={() => setRenamed(undefined)}
                />
              ) : (
                <>
                  <button
                    type="button"
                    class="link grow"
                    aria-current={view.filters === filters ? 'true' : undefined}
                    onClick={() => {
                      pick(view.filters);
                      onClose();
                    }}
                  >
                    {view.name}
                  </button>
                  {i >= 2 && (
                    <>
                      <button type="button" aria-label={`${t('work.views.rename')}: ${view.name}`} onClick={() => setRenamed(view.name)}>
                        {t('work.views.rename')}
                      </button>
                      <button
                        type="button"
                        class="danger-quiet"
                        aria-label={`${t('work.views.delete')}: ${view.name}`}
                        onClick={() => void change((all) => all.filter((each) => each.name !== view.name))}
                      >
                        {t('work.views.delete')}
                      </button>
                    </>
                  )}
                </>
              )}
            </li>
          ))}
        </ul>
        <Fault error={error} {...(!views && { retry: read })} />
        {views && views.length >= MAX_VIEWS && <p class="quiet">{t('work.views.full', { count: number(MAX_VIEWS) })}</p>}
        {views && views.length < MAX_VIEWS && (
          <form class="stack" onSubmit={submit}>
            <Field label={t('work.views.name')} required maxLength={60} value={name} onValue={setName}>
              {isTaken(name) && <small class="fault">{t('work.views.taken')}</small>}
            </Field>
            <p class="bar">
              <button class="primary" disabled={isTaken(name)}>
                {t('work.views.save')}
              </button>
            </p>
          </form>
        )}
        <Columns filters={filters} />
      </div>
    </Modal>
  );
}

/** Which columns the list has; they are saved with a view. */
function Columns({ filters }: { filters: string }) {
  const without = columnsWithout(new URLSearchParams(filters));
  const show = (name: (typeof without)[number], on: boolean) =>
    setQuery({ without: OPTIONAL_COLUMNS.filter((each) => (each === name ? !on : without.includes(each))).join('.') });
  return (
    <fieldset class="choices columns">
      <legend>{t('work.columns')}</legend>
      {OPTIONAL_COLUMNS.map((name) => (
        <label key={name} class="check">
          <input type="checkbox" checked={!without.includes(name)} onChange={(event) => show(name, event.currentTarget.checked)} />
          <span>{t(HEADINGS[name])}</span>
        </label>
      ))}
    </fieldset>
  );
}

interface RenameProps {
  name: string;
  isTaken(name: string): boolean;
  onName(name: string): void;
  onCancel(): void;
}

function Rename({ name, isTaken, onName, onCancel }: RenameProps) {
  const [to, setTo] = useState(name);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.select(), []);
  const taken = to.trim() !== name && isTaken(to);
  return (
    <form
      class="grow stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (to.trim() === name) onCancel();
        else onName(to.trim());
      }}
    >
      <label class="field">
        <span>{t('work.views.new-name')}</span>
        <input ref={input} required maxLength={60} pattern=".*\S.*" value={to} onInput={(event) => setTo(event.currentTarget.value)} />
        {taken && <small class="fault">{t('work.views.taken')}</small>}
      </label>
      <p class="bar">
        <button disabled={taken}>{t('work.views.rename')}</button>
        <button type="button" onClick={onCancel}>
          {t('work.views.keep')}
        </button>
      </p>
    </form>
  );
}
