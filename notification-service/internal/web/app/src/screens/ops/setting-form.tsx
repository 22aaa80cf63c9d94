import type { ComponentChildren } from 'preact';

import { useEdited, type Edited } from '../../state/setting';
import { toast } from '../../state/toasts';
import { Discard } from '../../ui/discard';
import { Fault } from '../../ui/problem';
import { Acts, Fields } from './acts';
import { Waiting } from './waiting';

interface Props<T> {
  edited: Edited<T>;
  put(value: T): Promise<T>;
  /** The button's word, and what is said once it is done. */
  save: string;
  saved: string;
  hint?: string;
  /** Whether it may be sent, which is asked when it is to be. */
  ready?(): boolean;
  /** Whether a field says already why it was refused. */
  explained?: boolean;
  buttons?: ComponentChildren;
  children: ComponentChildren;
}

/** A setting that is saved as a whole: its fields, why it was refused, and the ways on. */
export function SettingForm<T>({ edited, put, save, saved, hint, ready, explained, buttons, children }: Props<T>) {
  const submit = (event: Event) => {
    event.preventDefault();
    const value = edited.value.value;
    if (value === undefined || ready?.() === false) return;
    put(value).then((kept) => {
      edited.show(kept);
      toast(saved);
    }, edited.fail);
  };
  return (
    <form class="stack narrow" onSubmit={submit}>
      {hint && <p class="quiet">{hint}</p>}
      <Fields>{children}</Fields>
      {!explained && <Fault error={edited.error.value} />}
      <Acts>
        <p class="bar">
          {buttons}
          <button class="primary">{save}</button>
          <Discard edited={edited} />
        </p>
      </Acts>
    </form>
  );
}

interface ListProps<T> extends Omit<Props<T[]>, 'children' | 'buttons'> {
  none: string;
  add: string;
  remove: string;
  blank(id: number): T;
  nameOf(each: T): string;
  /** The fields of one of them. */
  children(each: T, change: (part: Partial<T>) => void): ComponentChildren;
}

/** A list of things that are written here, and saved together. */
export function SettingList<T extends { id: number }>({ none, add, remove, blank, nameOf, children, ...form }: ListProps<T>) {
  const { edited } = form;
  useEdited(edited);
  const all = edited.value.value;
  if (!all) return <Waiting error={edited.error.value} retry={() => void edited.load()} />;
  const change = (id: number) => (part: Partial<T>) => edited.set(all.map((each) => (each.id === id ? { ...each, ...part } : each)));
  return (
    <SettingForm
      {...form}
      buttons={
        <button type="button" onClick={() => edited.set([...all, blank(Math.max(0, ...all.map(({ id }) => id)) + 1)])}>
          {add}
        </button>
      }
    >
      {all.length === 0 && <p class="empty">{none}</p>}
      {all.map((each) => (
        <fieldset key={each.id} class="panel bare">
          <legend class="hidden">{nameOf(each)}</legend>
          {children(each, change(each.id))}
          <Acts>
            <p>
              <button type="button" class="danger-quiet" onClick={() => edited.set(all.filter(({ id }) => id !== each.id))}>
                {remove}
              </button>
            </p>
          </Acts>
        </fieldset>
      ))}
    </SettingForm>
  );
}
