import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

import { t } from '../../lang/queue';
import { Skeleton } from '../../ui/skeleton';

export interface Choice {
  key: string;
  name: string;
  /** The part that distinguishes it from others of the same name. */
  about?: ComponentChildren;
  onChoose(): void;
}

interface Props {
  label: string;
  choices: Choice[];
  /** Called with what is typed, where the choices depend on it; otherwise they are narrowed by their names. */
  onType?(text: string): void;
  busy?: boolean;
  /** Whether the choices are still to come. */
  searching?: boolean;
}

/** A field to type into, and choices below it. Enter takes the first. */
export function Picker({ label, choices, onType, busy = false, searching = false }: Props) {
  const [typed, setTyped] = useState('');
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = onType ? choices : choices.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
  const submit = (event: Event) => {
    event.preventDefault();
    if (!busy) shown[0]?.onChoose();
  };
  return (
    <form class="stack" onSubmit={submit} aria-busy={busy}>
      <label class="field">
        <span>{label}</span>
        <input
          data-first
          type="search"
          maxLength={200}
          autoComplete="off"
          value={typed}
          onInput={(event) => {
            setTyped(event.currentTarget.value);
            onType?.(event.currentTarget.value.trim());
          }}
        />
      </label>
      <ul class="picker">
        {shown.map(({ key, name, about, onChoose }) => (
          <li key={key}>
            <button type="button" disabled={busy} onClick={onChoose}>
              <span class="wrap">{name}</span>
              {about && <small class="quiet">{about}</small>}
            </button>
          </li>
        ))}
      </ul>
      {shown.length === 0 && (searching ? <Skeleton /> : <p class="empty">{t('work.no-match')}</p>)}
    </form>
  );
}
