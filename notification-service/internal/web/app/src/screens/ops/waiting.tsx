import { Fault } from '../../ui/problem';
import { Skeleton } from '../../ui/skeleton';

interface Props {
  /** Why no answer has come; absent while one is under way. */
  error?: unknown;
  retry(): void;
  of?: 'message';
}

/** The place of an answer, with the room that it takes; and why none came. */
export function Waiting({ error, retry, of }: Props) {
  if (error) return <Fault error={error} retry={retry} {...(of && { of })} />;
  return <Skeleton />;
}
