import type { DeadLetterSelection, FailureClass } from '../../api/client';

/** The fields of a dead letter that a selection may name, from an address or a group. */
export interface SelectionFields {
  queue?: string | undefined;
  error_class?: string | undefined;
  error_group?: string | undefined;
  replay_id?: string | undefined;
}

/** Omits the fields that are not given. */
export function selectionOf({ queue, error_class, error_group, replay_id }: SelectionFields): DeadLetterSelection {
  return {
    ...(queue && { queue }),
    ...(error_class && { error_class: error_class as FailureClass }),
    ...(error_group && { error_group }),
    ...(replay_id && { replay_id }),
  };
}
