import { Failure, type Problem } from '../../api/client';
import { Fault } from '../../ui/problem';

interface Props {
  error: unknown;
  told(fault: NonNullable<Problem['errors']>[number]): string;
}

/** The reason why a file was refused, and each fault in it in the words of `told`. */
export function Faults({ error, told }: Props) {
  const faults = error instanceof Failure ? (error.problem?.errors ?? []) : [];
  return (
    <>
      <Fault error={error} />
      {faults.length > 0 && (
        <ul class="faults">
          {faults.map((fault, i) => (
            <li key={i}>{told(fault)}</li>
          ))}
        </ul>
      )}
    </>
  );
}
