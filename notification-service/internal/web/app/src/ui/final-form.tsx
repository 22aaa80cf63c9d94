import { toast } from '../state/toasts';
import { useAct } from './act';
import { Modal } from './modal';
import { Fault } from './problem';

interface Props {
  /** The effect of the act, and its limits. */
  points: string[];
  button: string;
  kind?: 'primary' | 'danger';
  /** Shown once it is done. */
  done?: string;
  act(): Promise<unknown>;
  onClose(): void;
}

/** Says what an act does that nobody can undo, and asks once more. */
export function FinalForm({ points, button, kind = 'danger', done, act, onClose }: Props) {
  const { busy, error, submits } = useAct();
  const submit = submits(async () => {
    await act();
    if (done) toast(done);
    onClose();
  });
  return (
    <form class="stack" onSubmit={submit} aria-busy={busy}>
      <ul class="stack">
        {points.map((point) => (
          <li key={point}>{point}</li>
        ))}
      </ul>
      <Fault error={error} />
      <button class={kind}>{button}</button>
    </form>
  );
}

/** The same in a dialog, whose title is the button's word. */
export const Final = ({ title, ...form }: Omit<Props, 'button'> & { title: string }) => (
  <Modal title={title} onClose={form.onClose}>
    <FinalForm {...form} button={title} />
  </Modal>
);
