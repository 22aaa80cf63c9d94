import { useState } from 'preact/hooks';

import { toast } from '../../state/toasts';
import { Fault } from '../../ui/problem';

interface Props {
  /** The effect of the act, and its limits. */
  points: string[];
  button: string;
  kind: 'primary' | 'danger';
  /** Shown once it is done. */
  done: string;
  act(): Promise<void>;
  onClose(): void;
}

/** Says what an act does that nobody can undo, and asks once more. */
export function FinalForm({ points, button, kind, done, act, onClose }: Props) {
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      await act();
      toast(done);
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <form class="stack" onSubmit={submit} aria-busy={busy}>
      <ul>
        {points.map((point) => (
          <li key={point}>{point}</li>
        ))}
      </ul>
      <Fault error={error} />
      <button class={kind}>{button}</button>
    </form>
  );
}
