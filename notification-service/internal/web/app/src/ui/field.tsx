import type { ComponentChildren, JSX } from 'preact';

interface Labelled {
  label: ComponentChildren;
  /** A help to fill it in, after the field. */
  hint?: string | undefined;
  /** A class of the label. */
  class?: string | undefined;
  /** More after the field, such as its fault. */
  children?: ComponentChildren;
}

const Labelled = ({ label, hint, class: more = '', children, field }: Labelled & { field: ComponentChildren }) => (
  <label class={`field ${more}`}>
    <span>{label}</span>
    {field}
    {hint && <small>{hint}</small>}
    {children}
  </label>
);

type Of<Tag extends 'input' | 'textarea' | 'select'> = Labelled & { onValue(value: string): void } & Omit<
    JSX.IntrinsicElements[Tag],
    keyof Labelled | 'onInput' | 'role'
  >;

/** A line that a person fills in. One that is required takes no blanks alone. */
export function Field({ onValue, label, hint, class: more, children, ...input }: Of<'input'>) {
  // An empty pattern is what would be left of one that goes, and takes nothing.
  const attributes = { pattern: input.required ? '.*\\S.*' : '.*', ...input } as JSX.IntrinsicElements['input'];
  const field = <input {...attributes} onInput={(event) => onValue(event.currentTarget.value)} />;
  return <Labelled {...{ label, hint, class: more, children, field }} />;
}

/** Lines that a person fills in. */
export function Lines({ onValue, label, hint, class: more, children, ...area }: Of<'textarea'>) {
  const field = <textarea {...area} onInput={(event) => onValue(event.currentTarget.value)} />;
  return <Labelled {...{ label, hint, class: more, children, field }} />;
}

/** Values with what they are called. */
type Named = readonly (readonly [value: string | number, name: string])[];

export const Options = ({ of }: { of: Named }) => (
  <>
    {of.map(([value, name]) => (
      <option key={value} value={value}>
        {name}
      </option>
    ))}
  </>
);

/** One of several that a person chooses; none is what stands for none, and absent if one is always chosen. */
export function Choice(props: Of<'select'> & { options: Named; none?: string }) {
  const { onValue, label, hint, class: more, children, options, none, ...select } = props;
  const field = (
    <select {...select} onChange={(event) => onValue(event.currentTarget.value)}>
      {none !== undefined && <option value="">{none}</option>}
      <Options of={options} />
    </select>
  );
  return <Labelled {...{ label, hint, class: more, children, field }} />;
}
