import { useEffect, useMemo, useState } from 'preact/hooks';

import { Failure, must, reportService, type Job } from '../api/client';
import { t } from '../lang/firm';
import { Where } from '../map/where';
import { createChoice, MAX_PHOTOS, ofFinishedWork } from '../photos/choice';
import { Picker } from '../photos/picker';
import { scaled } from '../photos/scale';
import { send } from '../photos/send';
import { useAct } from '../ui/act';
import { Lines } from '../ui/field';
import { Fault } from '../ui/problem';
import { lastDay } from '../ui/time';
import { useSubject } from '../ui/title';

/** How long a photo may take: a few hundred kilobytes, from where there is hardly any reception. */
const PHOTO_MS = 10 * 60_000;
const STATES = ['accepted', 'done', 'cannot'] as const;

/** Whether an answer says that the link opens nothing, or no longer does. */
const hasEnded = (status = 0) => status === 401 || status === 404;

/**
 * One report, for the firm that is to repair it: by the link in its mail, without an account.
 * Only what the firm sends changes anything.
 */
export function JobScreen({ path: [, token = ''] }: { path: string[] }) {
  const [job, setJob] = useState<Job>();
  const [ended, setEnded] = useState(false);
  const opening = useAct();
  const headers = { Authorization: `Bearer ${token}` };

  /** Shows the job as it is answered. The end of a link ends no session. */
  const show = async (asked: Promise<{ data?: Job; error?: unknown; response: Response }>) => {
    const answer = await asked.catch(() => undefined);
    if (hasEnded(answer?.response.status)) return setEnded(true);
    setJob(await must(answer ? Promise.resolve(answer) : Promise.reject(new Error())));
  };
  const load = () => opening.run(() => show(reportService.GET('/reports/job', { headers })));
  useEffect(() => void load(), [token]);
  useSubject(job?.title ?? job?.category_name);

  if (ended)
    return (
      <section class="stack narrow">
        <h1 tabIndex={-1}>{t('job.ended')}</h1>
        <p>{t('job.ended.text')}</p>
      </section>
    );
  if (!job)
    return (
      <section class="stack narrow">
        <h1 tabIndex={-1}>{t('loading')}</h1>
        <Fault error={opening.error} retry={() => void load()} />
      </section>
    );
  return (
    <section class="stack narrow">
      <h1 tabIndex={-1}>{job.title ?? job.category_name}</h1>
      <p class="meta">
        <span>{job.category_name}</span>
        <span>
          {t('report.reference')} <code>{job.number}</code>
        </span>
        <span>{job.department_name}</span>
      </p>
      {job.text && <p class="note">{job.text}</p>}
      {job.description && <p class="story">{job.description}</p>}
      {job.photos.length > 0 && (
        <ul class="thumbnails">
          {job.photos.map((id, i) => (
            <li key={id}>
              <a href={`/photos/${id}/2048.jpg`} target="_blank" rel="noopener noreferrer">
                <img src={`/photos/${id}/320.jpg`} alt={t('photos.numbered', { n: String(i + 1) })} loading="lazy" />
              </a>
            </li>
          ))}
        </ul>
      )}
      {job.asset_name && <p>{job.asset_name}</p>}
      <Where report={{ address: '', ...job, id: job.report_id, title: job.title ?? job.category_name, status: 'pending' }} />
      <Say
        job={job}
        token={token}
        onSay={(body) => show(reportService.POST('/reports/job', { headers, body }))}
        onEnded={() => setEnded(true)}
      />
      <p class="quiet">{t('job.until', { firm: job.firm_name, day: lastDay(job.ends_at) })}</p>
    </section>
  );
}

type Said = (typeof STATES)[number];

interface SayProps {
  job: Job;
  token: string;
  onSay(body: { said: Said; text: string }): Promise<void>;
  onEnded(): void;
}

function Say({ job, token, onSay, onEnded }: SayProps) {
  const [said, setSaid] = useState<Said | undefined>(job.said);
  const [text, setText] = useState(job.said_text ?? '');
  const [sending, setSending] = useState<{ n: number; of: number; part: number }>();
  const [sent, setSent] = useState(false);
  const { busy, error, submits } = useAct();
  const choice = useMemo(() => createChoice(ofFinishedWork(`firm ${job.report_id}`)), [job.report_id]);
  useEffect(() => choice.open(), [choice]);
  /** Sends the photos one after the other. Another try sends none that has arrived. */
  const sendPhotos = async () => {
    await choice.added();
    for (const [i, photo] of choice.list.value.entries()) {
      const upload = {
        ...photo,
        report: job.report_id,
        picture: photo.quarters ? await scaled(photo.picture, photo.quarters) : photo.picture,
        purpose: 'after' as const,
        token,
      };
      const progress = (part: number) => setSending({ n: i + 1, of: choice.list.value.length + i, part });
      progress(0);
      if (!(await send(upload, progress, AbortSignal.timeout(PHOTO_MS)))) throw new Failure();
      choice.drop(photo.id);
    }
  };
  const submit = submits(async () => {
    setSent(false);
    try {
      if (said === 'done') await sendPhotos();
      await onSay({ said: said!, text: text.trim() });
      setSent(true);
    } catch (failure) {
      if (failure instanceof Failure && hasEnded(failure.problem?.status)) return onEnded();
      throw failure;
    } finally {
      setSending(undefined);
    }
  });
  return (
    <form class="stack panel" onSubmit={submit} onInput={() => setSent(false)} aria-busy={busy}>
      <fieldset class="choices">
        <legend>{t('job.ask')}</legend>
        {STATES.map((state) => (
          <label key={state} class="chip">
            <input type="radio" name="said" required checked={said === state} onChange={() => setSaid(state)} />
            <span>{t(`job.${state}`)}</span>
          </label>
        ))}
      </fieldset>
      <Lines
        key={`${said === 'cannot'}`} // or what was wrong with the one would be said of the other
        label={t(said === 'cannot' ? 'job.why' : 'job.text')}
        hint={t('job.text.hint')}
        required={said === 'cannot'}
        rows={3}
        maxLength={500}
        value={text}
        onValue={setText}
      />
      {said === 'done' && (
        <div class="stack" role="group" aria-label={t('job.photos')}>
          <Picker choice={choice} free={MAX_PHOTOS} hint={false} label={t('job.photos')} />
          <small class="quiet">{t('job.photos.hint')}</small>
        </div>
      )}
      <Fault error={error} />
      <div role="status">
        {sending && <p>{t('job.sending', { n: String(sending.n), of: String(sending.of) })}</p>}
        {sent && <p>{t('job.sent')}</p>}
      </div>
      {sending && <progress max={1} value={sending.part} aria-label={t('photos.sending')} />}
      <button class="primary" disabled={busy}>
        {t('job.send')}
      </button>
    </form>
  );
}
