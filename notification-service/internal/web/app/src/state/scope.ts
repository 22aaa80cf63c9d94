/** Whose reports the official works on, and what they may do with them. */
import { signal } from '@preact/signals';

import { Failure, must, reportService, type Department, type OwnScope } from '../api/client';

/** Absent until it is known. */
export const scope = signal<OwnScope | undefined>();

/** Reads it. It is the token's, and may be another one with the next. */
export async function loadScope(): Promise<OwnScope> {
  return (scope.value = await must(reportService.GET('/reports/me')));
}

/** Whether the official works for departments, and not for the whole city. */
export const isLimited = () => scope.value?.scope === 'department';

/** Whether the official hides, redacts and shows what residents wrote and uploaded; false until it is known. */
export const moderates = () => scope.value?.moderator === true;

/** The departments whose reports the official works on. */
export const ownOf = (departments: Department[]) =>
  isLimited() ? departments.filter(({ id }) => scope.value?.departments.some((each) => each.id === id)) : departments;

/** Whether a failure says that a report is not the official's, or no longer. */
export const isElsewhere = (failure: unknown) => failure instanceof Failure && ['other-department', 'not-found'].includes(failure.kind);

/** Resolves to whether the official works on a report. */
export async function worksOn(id: string): Promise<boolean> {
  if ((scope.value ?? (await loadScope())).scope === 'city') return true;
  try {
    await must(reportService.GET('/reports/{id}/work', { params: { path: { id } } }));
    return true;
  } catch (failure) {
    if (isElsewhere(failure)) return false;
    throw failure;
  }
}
