/** The comments on the report that is shown, and what the user is writing about reports. */
import { batch, signal } from '@preact/signals';

import { must, reportService, type Comment, type FeedEvent } from '../api/client';
import { debounce } from '../live/batch';
import { randomKey } from '../state/draft';
import { watchFeed } from '../state/feed';
import { confirmUser } from '../state/session';
import { userData } from '../state/storage';

/** As many as the server answers with at a time. */
const PAGE = 100;
/** After an event the comments are fetched within this time. */
const REFRESH_MS = 200;
/** How many reports somebody may be writing about. */
const MAX_KEPT = 20;

/**
 * A comment that the user is writing. It survives a reload and a lost
 * connection. However often it is sent as it is, it is there once: what is
 * changed is another comment, with another key.
 */
export interface CommentDraft {
  key: string;
  text: string;
  /** Absent until it is chosen: neither is the usual one. */
  anonymous?: boolean;
}

/** Pairs of a report's id and the comment on it, the latest first. */
const drafts = userData<[report: string, draft: CommentDraft][]>('comments', () => []);

export function commentOn(report: string): CommentDraft {
  return drafts.value.find(([id]) => id === report)?.[1] ?? { key: '', text: '' };
}

export function writeComment(report: string, part: Partial<Omit<CommentDraft, 'key'>>): void {
  keep(report, { ...commentOn(report), ...part, key: randomKey() });
}

function keep(report: string, draft?: CommentDraft): void {
  const others = drafts.value.filter(([id]) => id !== report);
  drafts.value = draft ? [[report, draft] as [string, CommentDraft], ...others].slice(0, MAX_KEPT) : others;
}

export function createComments(report: string) {
  const comments = signal<Comment[]>([]);
  /** Of all that everybody sees; absent until they are loaded. */
  const count = signal<number>();
  const more = signal(false);
  const error = signal<unknown>();
  let latest = 0;

  /** Reads that many comments again, or a page, so that hidden ones disappear. */
  const load = async (wanted = comments.value.length) => {
    const mine = ++latest;
    const all: Comment[] = [];
    try {
      for (let cursor: string | undefined; ;) {
        const query = { limit: PAGE, ...(cursor && { cursor }) };
        const page = await must(reportService.GET('/reports/{id}/comments', { params: { path: { id: report }, query } }));
        all.push(...page.comments);
        cursor = page.next_cursor;
        if (cursor && all.length < wanted) continue;
        if (mine !== latest) return; // another one began later, and has what is newer
        batch(() => {
          comments.value = all;
          count.value = page.count;
          more.value = cursor !== undefined;
          error.value = undefined;
        });
        return;
      }
    } catch (failure) {
      if (mine === latest) error.value = failure;
    }
  };

  /** Sends what the user has written; it is gone from the draft only once it is there. */
  const send = async () => {
    if (!(await confirmUser())) return;
    const { key, text, anonymous = true } = commentOn(report);
    const params = { path: { id: report }, header: { 'Idempotency-Key': key } };
    await must(reportService.POST('/reports/{id}/comments', { params, body: { text: text.trim(), anonymous } }));
    keep(report);
    await load(Infinity); // it is the last one
  };

  const hide = async (comment: Comment, reason: string) => {
    await must(
      reportService.PUT('/reports/{id}/comments/{comment_id}/hidden', {
        params: { path: { id: report, comment_id: comment.id } },
        body: { reason },
      }),
    );
    await load();
  };

  const show = async (comment: Comment) => {
    await must(
      reportService.DELETE('/reports/{id}/comments/{comment_id}/hidden', { params: { path: { id: report, comment_id: comment.id } } }),
    );
    await load();
  };

  /** Keeps them current until the result is called. */
  const watch = () => {
    void load();
    const again = debounce(() => void load(), REFRESH_MS);
    return watchFeed({
      onEvents: (events: FeedEvent[]) => events.some((e) => e.report_id === report && e.type === 'report.commented') && again(),
      onGap: again,
    });
  };

  return { comments, count, more, error, load, send, hide, show, watch };
}

export type OpenComments = ReturnType<typeof createComments>;
