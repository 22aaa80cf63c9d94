import type { DeadLetterSelection, FailureClass } from '../../api/client';

/** What of a dead letter a selection may name, as it stands in an address or a group. */
export interface Narrowing {
  queue?: string | undefined;
  error_class?: string | undefined;
  error_group?: string | undefined;
}

/** Leaves out what is not narrowed. */
export function selectionOf({ queue, error_class, error_group }: Narrowing): DeadLetterSelection {
  return {
    ...(queue && { queue }),
    ...(error_class && { error_class: error_class as FailureClass }),
    ...(error_group && { error_group }),
  };
}
