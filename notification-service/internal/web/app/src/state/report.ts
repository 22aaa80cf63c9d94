/** One report that stays current while it is shown. */
import { batch, signal } from '@preact/signals';

import {
  Failure,
  must,
  reportService,
  type Correction,
  type FeedEvent,
  type HistoryEntry,
  type Report,
  type Status,
  type VoteType,
} from '../api/client';
import { debounce } from '../live/batch';
import { randomKey } from './draft';
import { applyEvents, watchFeed } from './feed';
import { watchDialogue } from './notifications';

/** The timeline is fetched within this time after a change of status. */
const REFRESH_MS = 200;
/** How often a change of status is tried while votes arrive. */
const MAX_TRIES = 5;

/** A vote that somebody wanted to cast before signing in. */
export const intendedVote = signal<{ report: string; type: VoteType } | undefined>();

export function createReport(id: string) {
  const report = signal<Report | undefined>();
  const history = signal<HistoryEntry[]>([]);
  const error = signal<unknown>();
  const path = { params: { path: { id } } };
  /** Counts readings: only the latest is shown. */
  let readings = 0;

  const load = async () => {
    const reading = ++readings;
    try {
      const [fresh, past] = await Promise.all([
        must(reportService.GET('/reports/{id}', path)),
        must(reportService.GET('/reports/{id}/history', path)),
      ]);
      if (reading !== readings) return;
      batch(() => {
        show(fresh);
        history.value = past.history;
        error.value = undefined;
      });
    } catch (failure) {
      if (reading === readings) error.value = failure;
    }
  };
  const refresh = debounce(() => void load(), REFRESH_MS);

  /** An answer may be overtaken by an event. */
  const show = (fresh: Report) => {
    if (fresh.version >= (report.value?.version ?? 0)) report.value = fresh;
  };

  const onEvents = (events: FeedEvent[]) => {
    if (report.value) report.value = applyEvents(report.value, events);
    if (
      events.some(
        (event) =>
          event.report_id === id &&
          ['report.status.updated', 'report.moderated', 'report.corrected', 'report.disputed'].includes(event.type),
      )
    )
      refresh();
  };

  /** Votes, or withdraws the same vote. */
  const vote = async (voteType: VoteType) => {
    const withdraw = report.value?.my_vote === voteType;
    const result = withdraw
      ? await must(reportService.DELETE('/reports/{id}/vote', path))
      : await must(reportService.POST('/reports/{id}/vote', { ...path, body: { vote_type: voteType } }));
    if (!report.value) return;
    const { my_vote: _, ...rest } = report.value;
    report.value = {
      ...rest,
      ...(result.vote_type && { my_vote: result.vote_type }),
      score: result.score,
      version: Math.max(result.version, rest.version),
    };
  };

  const changeStatus = async (seen: Report, status: Status, note: string) => {
    const reread = async () => {
      await load();
      return report.value;
    };
    show(await moveReport(seen, status, note, reread));
    refresh();
  };

  /** Makes one's own report anonymous. */
  const hideName = async () =>
    show(await must(reportService.PUT('/reports/{id}/privacy', { ...path, body: { privacy_level: 'anonymous' } })));

  /** Takes one's own report back. */
  const withdraw = async () => show(await must(reportService.DELETE('/reports/{id}', path)));

  /** Corrects one's own report, as it is here. */
  const correct = async (body: Correction) => {
    const params = { path: { id }, header: { 'If-Match': `"${report.value?.version}"` } };
    show(await must(reportService.PATCH('/reports/{id}', { params, body })));
    refresh();
  };

  const reply = async (text: string) => {
    await replyToReport(id, text);
    await load();
  };

  const watch = () => {
    const ends = [watchFeed({ onEvents, onGap: refresh }), watchDialogue(id, refresh)];
    return () => ends.forEach((end) => end());
  };
  return { report, history, error, load, vote, changeStatus, hideName, withdraw, correct, reply, watch };
}

export type OpenReport = ReturnType<typeof createReport>;

/** A report as somebody saw it who decides about its status. */
export type SeenReport = Pick<Report, 'id' | 'status' | 'version'>;

/**
 * Changes the status of a report, unless another official was faster. Votes
 * change the version as well; after them it is tried again. Returns the report
 * with its new status.
 */
export async function moveReport(
  seen: SeenReport,
  status: Status,
  note: string,
  reread: () => Promise<SeenReport | undefined>,
): Promise<Report> {
  let version = seen.version;
  for (let tries = 1; ; tries++) {
    try {
      const params = { path: { id: seen.id }, header: { 'If-Match': `"${version}"` } };
      return await must(reportService.PATCH('/reports/{id}/status', { params, body: { status, ...(note && { note }) } }));
    } catch (failure) {
      if (!(failure instanceof Failure) || failure.kind !== 'stale-version') throw failure;
      const now = await reread();
      if (!now || now.status !== seen.status || tries === MAX_TRIES) throw failure;
      version = now.version;
    }
  }
}

/** The reply that had no answer yet. The same one again has one effect, by its key. */
let pendingReply: { what: string; key: string } | undefined;

/** Replies to everybody without changing the status. */
export async function replyToReport(id: string, text: string): Promise<void> {
  const what = `${id} ${text}`;
  if (pendingReply?.what !== what) pendingReply = { what, key: randomKey() };
  const params = { path: { id }, header: { 'Idempotency-Key': pendingReply.key } };
  try {
    await must(reportService.POST('/reports/{id}/replies', { params, body: { text } }));
    pendingReply = undefined;
  } catch (failure) {
    if (!(failure instanceof Failure) || !failure.uncertain) pendingReply = undefined;
    throw failure;
  }
}
