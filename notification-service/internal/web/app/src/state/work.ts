/** The officials' data of one report, and their acts on it. */
import { batch, signal } from '@preact/signals';

import {
  Failure,
  must,
  reportService,
  type Assignment,
  type Correction,
  type FeedEvent,
  type Status,
  type Task,
  type Work,
} from '../api/client';
import { debounce } from '../live/batch';
import { watchFeed } from './feed';
import { watchDialogue } from './notifications';
import { replyToReport, moveReport } from './report';
import { isElsewhere } from './scope';

/** The acts of officials are fetched within this time after a change of status. */
const REFRESH_MS = 200;
/** How often others' votes may overtake a correction or a decision before it fails. */
const MAX_TRIES = 5;

/** The report that the reader has merged, assigned or sent to a firm last: no event says so. */
const acted = signal<{ id: string } | undefined>();

/** Calls onTask with the report after each change. */
export function createWork(id: string, onTask: (task: Task) => void) {
  const work = signal<Work | undefined>();
  /** The words of the report, which the queue does not have; and who filed it, if that is public. */
  const words = signal<{ description: string; reporter?: string } | undefined>();
  const error = signal<unknown>();
  const params = { path: { id } };
  /** Counts readings: only the latest is shown, and the last that has ended. */
  let readings = 0;
  let ended = 0;

  const show = (fresh: Work) => {
    work.value = fresh;
    onTask(fresh.report);
  };
  const load = async () => {
    const reading = ++readings;
    try {
      const [report, fresh] = await Promise.all([
        must(reportService.GET('/reports/{id}', { params })),
        must(reportService.GET('/reports/{id}/work', { params })),
      ]);
      if (reading !== readings) return;
      batch(() => {
        words.value = { description: report.description, ...(report.reporter_name && { reporter: report.reporter_name }) };
        show(fresh);
        error.value = undefined;
      });
    } catch (failure) {
      if (reading === readings) error.value = failure;
    } finally {
      ended = Math.max(ended, reading);
    }
  };
  /** Shows what came of an act of one's own. What is read at this moment may be from before it. */
  const showAct = (fresh: Work) => {
    show(fresh);
    if (ended < readings) void load();
  };
  const refresh = debounce(() => void load(), REFRESH_MS);
  const onEvents = (events: FeedEvent[]) => {
    if (
      events.some(
        (event) =>
          event.report_id === id &&
          ['report.status.updated', 'report.moderated', 'report.corrected', 'report.disputed', 'report.commented'].includes(event.type),
      )
    )
      refresh();
  };

  return {
    work,
    words,
    error,
    load,

    async changeStatus(seen: Task, status: Status, note: string) {
      const moved = await moveReport(seen, status, note, async () => {
        await load();
        return work.value?.report;
      });
      const { transitions, version, score, updated_at } = moved;
      onTask({ ...seen, status: moved.status, transitions, version, score, updated_at });
      refresh();
      return moved;
    },
    async reply(text: string) {
      await replyToReport(id, text);
      await load();
    },
    /** Says that officials have seen the comments up to this one. */
    async seeComments(last: string) {
      await must(reportService.PUT('/reports/{id}/comments/{comment_id}/seen', { params: { path: { id, comment_id: last } } }));
      await load();
    },
    async assign(assignment: Assignment) {
      showAct(await assignReport(id, assignment));
    },
    async addNote(text: string) {
      showAct(await must(reportService.POST('/reports/{id}/notes', { params, body: { text } })));
    },
    /** Says of which report this is a duplicate; of none without one. */
    async setDuplicate(original: string | undefined) {
      showAct(
        original
          ? await must(reportService.PUT('/reports/{id}/duplicate-of', { params, body: { original } }))
          : await must(reportService.DELETE('/reports/{id}/duplicate-of', { params })),
      );
    },
    async withdrawQuestion(question: string) {
      await must(reportService.DELETE('/reports/{id}/questions/{question_id}', { params: { path: { id, question_id: question } } }));
      await load();
    },
    /** Keeps a disputed report resolved; everybody reads why. */
    async keepResolved(seen: Task, note: string) {
      for (let version = seen.version, tries = 1; ; tries++) {
        try {
          const ifMatch = { path: { id }, header: { 'If-Match': `"${version}"` } };
          return showAct(await must(reportService.POST('/reports/{id}/verdict/decision', { params: ifMatch, body: { note } })));
        } catch (failure) {
          if (!(failure instanceof Failure) || failure.kind !== 'stale-version' || tries === MAX_TRIES) throw failure;
          await load(); // votes change the version as well
          const now = work.value?.report;
          if (!now?.disputed) throw failure;
          version = now.version;
        }
      }
    },

    /** Officials have hidden the report, shown it again or redacted its words. */
    moderated(fresh: Work) {
      show(fresh);
      refresh();
    },

    watch() {
      const onAct = (on: { id: string } | undefined) => {
        if (on?.id !== id) return;
        readings++; // what is read at this moment is from before it
        refresh();
      };
      const ends = [watchFeed({ onEvents, onGap: refresh }), watchDialogue(id, refresh), acted.subscribe(onAct)];
      return () => ends.forEach((end) => end());
    },
  };
}

export type OpenWork = ReturnType<typeof createWork>;

/** Asks the reporter something, and returns the report as it is then. */
export async function askReporter(id: string, text: string): Promise<Task> {
  const params = { path: { id } };
  await must(reportService.POST('/reports/{id}/questions', { params, body: { text } }));
  return (await must(reportService.GET('/reports/{id}/work', { params }))).report;
}

export async function assignReport(id: string, assignment: Assignment): Promise<Work> {
  const work = await must(reportService.PUT('/reports/{id}/assignment', { params: { path: { id } }, body: assignment }));
  acted.value = { id };
  return work;
}

/** Says that a report is a duplicate of another, and returns it as it is then. */
export async function mergeReport(id: string, original: string): Promise<Task> {
  const { report } = await must(reportService.PUT('/reports/{id}/duplicate-of', { params: { path: { id } }, body: { original } }));
  acted.value = { id };
  return report;
}

/** The report as it is by now; undefined if it is another department's. */
async function stillOwn(id: string): Promise<Task | undefined> {
  try {
    return (await must(reportService.GET('/reports/{id}/work', { params: { path: { id } } }))).report;
  } catch (failure) {
    if (isElsewhere(failure)) return undefined;
    throw failure;
  }
}

/** Gives a report to another department, and resolves to it as it is then; to undefined if it is not the official's any longer. */
export async function forwardReport(id: string, department_id: number, reason: string): Promise<Task | undefined> {
  await must(reportService.POST('/reports/{id}/forward', { params: { path: { id } }, body: { department_id, reason } }));
  return stillOwn(id);
}

/** Asks a firm of the department in charge to repair it. */
export async function sendToFirm(id: string, firm_id: string, text: string): Promise<void> {
  await must(reportService.POST('/reports/{id}/firm', { params: { path: { id } }, body: { firm_id, text } }));
  acted.value = { id };
}

/**
 * Corrects a report's category or place, unless another official was faster. Votes change
 * the version as well; after them it is tried again. Returns the report as it is then;
 * undefined if it went to another department with its category.
 */
export async function correctReport(seen: Task, body: Correction): Promise<Task | undefined> {
  const path = { id: seen.id };
  for (let version = seen.version, tries = 1; ; tries++) {
    try {
      await must(reportService.PATCH('/reports/{id}', { params: { path, header: { 'If-Match': `"${version}"` } }, body }));
      return await stillOwn(seen.id);
    } catch (failure) {
      if (!(failure instanceof Failure) || failure.kind !== 'stale-version' || tries === MAX_TRIES) throw failure;
      const fresh = await stillOwn(seen.id);
      if (!fresh || placeOf(fresh) !== placeOf(seen)) throw failure;
      version = fresh.version;
    }
  }
}

const placeOf = ({ category_id, latitude, longitude, address, asset }: Task) =>
  JSON.stringify([category_id, latitude, longitude, address, asset]);

/** The assignment that a task has. */
export function assignmentOf({ assignee, department_id, routed }: Task): Assignment {
  return { ...(assignee && { assignee }), ...(department_id && !routed && { department_id }) };
}
