import { useEffect, useMemo, useState } from 'preact/hooks';

import { Failure, type Comment, type Report } from '../api/client';
import { t, tn } from '../lang/report';
import { Reason } from '../screens/ops/reason';
import { moderates } from '../state/scope';
import { may, session } from '../state/session';
import { useAct } from '../ui/act';
import { Fault } from '../ui/problem';
import { here, href } from '../ui/router';
import { Time } from '../ui/time';
import { commentOn, createComments, writeComment, type OpenComments } from './state';

/** As much as the server takes. */
const MAX_LETTERS = 1_000;

interface Props {
  report: Pick<Report, 'id' | 'mine' | 'privacy_level' | 'visibility' | 'hidden_reason'>;
  /** Whether nothing is shown as long as there are none. */
  quiet?: boolean;
  /** How many are new to officials. */
  unseen?: number;
  /** Says that officials have seen all up to this one. */
  onSeen?: (last: Comment) => Promise<void>;
  /** Called with the last one that is shown. */
  onLast?: (last: Comment | undefined) => void;
}

/** The comments of residents on a report, and the form for another one. */
export function Comments({ report, quiet = false, unseen = 0, onSeen, onLast }: Props) {
  const open = useMemo(() => createComments(report.id), [report.id]);
  useEffect(() => open.watch(), [open]);
  const count = open.count.value;
  const role = session.value?.role;
  const [error, setError] = useState<unknown>();
  const last = open.comments.value.at(-1);
  useEffect(() => onLast?.(last), [last?.id]);
  if (quiet && open.comments.value.length === 0 && !open.error.value) return null;
  return (
    <section aria-labelledby="comments" class="comments stack">
      <h2 id="comments">{count === undefined ? t('comments.title') : tn('comments', count)}</h2>
      {count === 0 && open.comments.value.length === 0 && <p class="quiet">{t('comments.none')}</p>}
      <ol class="rows">
        {open.comments.value.map((comment) => (
          <OneComment key={comment.id} open={open} comment={comment} />
        ))}
      </ol>
      {open.more.value && (
        <button type="button" onClick={() => void open.load(open.comments.value.length + 1)}>
          {t('comments.more')}
        </button>
      )}
      {unseen > 0 && last && onSeen && (
        <p>
          <button type="button" class="link" onClick={() => onSeen(last).then(() => setError(undefined), setError)}>
            {tn('comments.see', unseen)}
          </button>
        </p>
      )}
      <Fault error={error} />
      <Fault error={open.error.value} retry={() => void open.load()} />
      {role === 'resident' && may('comments') && !report.hidden_reason && report.visibility === 'public' && (
        <CommentForm open={open} report={report} />
      )}
      {!may('comments') && (
        <p>
          <a href={href('sign-in', { to: here() })}>{t('comments.sign-in')}</a>
        </p>
      )}
    </section>
  );
}

function OneComment({ open, comment }: { open: OpenComments; comment: Comment }) {
  const [asking, setAsking] = useState(false);
  const [error, setError] = useState<unknown>();
  const show = () => open.show(comment).then(() => setError(undefined), setError);
  return (
    <li>
      <p class="meta">
        <strong>{comment.anonymous ? t('privacy.anonymous') : comment.author_name || t('comments.nameless')}</strong>
        <Time at={comment.created_at} dated />
        {comment.mine && <span>{t('comments.mine')}</span>}
      </p>
      <p class="said">{comment.text}</p>
      {comment.hidden_reason && <p class="note">{t('comments.hidden', { reason: comment.hidden_reason })}</p>}
      {moderates() &&
        (comment.hidden_reason ? (
          <button type="button" onClick={() => void show()}>
            {t('moderation.show')}
          </button>
        ) : (
          <button type="button" class="danger-quiet" aria-haspopup="dialog" onClick={() => setAsking(true)}>
            {t('comments.hide')}
          </button>
        ))}
      <Fault error={error} />
      {asking && (
        <Reason
          title={t('comments.hide')}
          hint={t('comments.hide-hint')}
          onSubmit={(reason) => open.hide(comment, reason)}
          onClose={() => setAsking(false)}
        />
      )}
    </li>
  );
}

function CommentForm({ open, report }: { open: OpenComments; report: Props['report'] }) {
  const { text, anonymous } = commentOn(report.id);
  const { busy, error, submits } = useAct();
  const fault = error instanceof Failure ? error.fault('/text') : undefined;
  return (
    <form class="stack panel" onSubmit={submits(() => open.send())} aria-busy={busy} aria-label={t('comments.write')}>
      <label class="field">
        <span>{t('comments.write')}</span>
        <textarea
          rows={3}
          required
          maxLength={MAX_LETTERS}
          value={text}
          onInput={(e) => writeComment(report.id, { text: e.currentTarget.value })}
        />
        <small>{tn('comments.left', MAX_LETTERS - text.length)}</small>
        {fault && <small class="fault">{fault}</small>}
      </label>
      <fieldset class="choices">
        <legend>{t('privacy')}</legend>
        {[false, true].map((each) => (
          <label key={String(each)} class="chip">
            <input
              type="radio"
              name={`comment-${report.id}`}
              required
              checked={anonymous === each}
              onChange={() => writeComment(report.id, { anonymous: each })}
            />
            <span>{t(each ? 'privacy.anonymous' : 'comments.named')}</span>
          </label>
        ))}
      </fieldset>
      <div role="status">
        {anonymous && <p class="quiet">{t('comments.anonymous-hint')}</p>}
        {anonymous === false && report.mine && report.privacy_level === 'anonymous' && <p class="note">{t('comments.shows-you')}</p>}
      </div>
      {!fault && <Fault error={error} />}
      <button class="primary">{t('comments.send')}</button>
    </form>
  );
}
