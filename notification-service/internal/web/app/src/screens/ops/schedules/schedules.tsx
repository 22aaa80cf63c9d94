import { useState } from 'preact/hooks';

import { must, notificationService, reportService, type Schedule, type ScheduleRun } from '../../../api/client';
import { isWord, language, number, t, tn } from '../../../lang/console';
import { Fault } from '../../../ui/problem';
import { usePoll } from '../../../ui/poll';
import { Time, exactTime } from '../../../ui/time';
import { Acts } from '../acts';
import { Reason } from '../reason';
import { Waiting } from '../waiting';

/** A job, and the service that has it. */
interface Job {
  service: 'reports' | 'notifications';
  schedule: Schedule;
}

type Act = 'pause' | 'resume' | 'run';

async function read(): Promise<Job[]> {
  const [reports, notifications] = await Promise.all([
    must(reportService.GET('/admin/reports/schedules')),
    must(notificationService.GET('/admin/notifications/schedules')),
  ]);
  return [
    ...reports.schedules.map((schedule) => ({ service: 'reports' as const, schedule })),
    ...notifications.schedules.map((schedule) => ({ service: 'notifications' as const, schedule })),
  ];
}

function operate({ service, schedule }: Job, act: Act, reason: string): Promise<unknown> {
  const { latest } = schedule;
  const period = act === 'run' && latest?.state === 'failed' ? latest.period : undefined;
  const request = { params: { path: { name: schedule.name } }, body: { reason, ...(period && { period }) } };
  return service === 'reports'
    ? must(reportService.POST(`/admin/reports/schedules/{name}/${act}`, request))
    : must(notificationService.POST(`/admin/notifications/schedules/{name}/${act}`, request));
}

/** The jobs that are due at times, and how far they are. */
export function Schedules() {
  const jobs = usePoll(read);
  return (
    <section class="stack" aria-labelledby="schedules">
      <h2 id="schedules">{t('schedules')}</h2>
      {jobs.value ? <Fault error={jobs.error} retry={jobs.refresh} /> : <Waiting error={jobs.error} retry={jobs.refresh} />}
      <ul class="rows">
        {jobs.value?.map((job) => (
          <Row key={`${job.service} ${job.schedule.name}`} job={job} onDone={jobs.refresh} />
        ))}
      </ul>
    </section>
  );
}

function Row({ job, onDone }: { job: Job; onDone(): void }) {
  const { schedule } = job;
  const { latest } = schedule;
  const purpose = `schedules.job.${schedule.name}`;
  const [asked, setAsked] = useState<Act>();
  const toggle: Act = schedule.paused ? 'resume' : 'pause';
  return (
    <li>
      <div>
        <strong>{schedule.name}</strong>
        {isWord(purpose) && <p>{t(purpose)}</p>}
        <p class="meta">
          <span>{t(`schedules.${job.service}`)}</span>
          <span>{timesOf(schedule.times)}</span>
          <span>
            {schedule.paused ? (
              t('schedules.paused')
            ) : (
              <>
                {t('schedules.next')} <time dateTime={schedule.next_at}>{exactTime(new Date(schedule.next_at))}</time>
              </>
            )}
          </span>
        </p>
        {latest && (
          <p class="meta">
            <span>{t(`schedules.${latest.state}`)}</span>
            <span>{progressOf(latest)}</span>
            <Time at={latest.ended_at ?? latest.started_at ?? latest.due_at} full seconds />
            {latest.ends_at && (
              <span>
                {t('schedules.ends')} <time dateTime={latest.ends_at}>{exactTime(new Date(latest.ends_at))}</time>
              </span>
            )}
          </p>
        )}
        {schedule.overruns && <p role="status">{t('schedules.overruns')}</p>}
        {latest?.error && (
          <p>
            <code>{latest.error}</code>
          </p>
        )}
        <Runs job={job} />
      </div>
      <Acts>
        <div class="bar">
          <button type="button" aria-haspopup="dialog" onClick={() => setAsked(toggle)}>
            {t(`schedules.${toggle}`)}
          </button>
          {!schedule.paused && latest?.state !== 'running' && (
            <button type="button" aria-haspopup="dialog" onClick={() => setAsked('run')}>
              {t('schedules.run')}
            </button>
          )}
        </div>
      </Acts>
      {asked && (
        <Reason
          title={t(`schedules.${asked}`)}
          hint={t(`schedules.${asked}-hint`)}
          onSubmit={(reason) => operate(job, asked, reason).then(onDone)}
          onClose={() => setAsked(undefined)}
        />
      )}
    </li>
  );
}

function progressOf({ done, total }: ScheduleRun): string {
  return total > 0 ? t('schedules.progress', { done: number(done), total: number(total) }) : t('schedules.count', { done: number(done) });
}

/** How many runs are read: enough to see what is usual. */
const RUNS = 20;

/** The runs of a job, the latest first, read when they are asked for. */
function Runs({ job: { service, schedule } }: { job: Job }) {
  const [runs, setRuns] = useState<ScheduleRun[]>();
  const [error, setError] = useState<unknown>();
  const read = () => {
    setError(undefined);
    const request = { params: { path: { name: schedule.name }, query: { limit: RUNS } } };
    const page =
      service === 'reports'
        ? must(reportService.GET('/admin/reports/schedules/{name}/runs', request))
        : must(notificationService.GET('/admin/notifications/schedules/{name}/runs', request));
    page.then((found) => setRuns(found.runs), setError);
  };
  return (
    <details onToggle={(event) => event.currentTarget.open && read()}>
      <summary>{t('schedules.runs')}</summary>
      <Fault error={error} retry={read} />
      {runs?.length === 0 && <p class="quiet">{t('schedules.no-runs')}</p>}
      <ul class="runs">
        {runs?.map((run) => (
          <li key={run.period} class="meta">
            <Time at={run.due_at} full seconds />
            <span class={run.state === 'failed' ? 'fault' : undefined}>{t(`schedules.${run.state}`)}</span>
            <span>{progressOf(run)}</span>
            {run.started_at && run.ended_at && (
              <span>{t('schedules.took', { seconds: secondsBetween(run.started_at, run.ended_at) })}</span>
            )}
            {run.times > 1 && <span>{tn('schedules.begun', run.times)}</span>}
            {run.error && <code>{run.error}</code>}
          </li>
        ))}
      </ul>
    </details>
  );
}

function secondsBetween(from: string, to: string): string {
  return number(Math.round((Date.parse(to) - Date.parse(from)) / 100) / 10);
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

/** The times of a job in words: the API has those of Go, such as every 24h0m0s. */
export function timesOf(times: string): string {
  const daily = /^every day at (\S+), (.+)$/.exec(times);
  if (daily) return t('schedules.daily', { time: daily[1]!, zone: daily[2]! });
  const every = /^every (?:(\d+)h)?(?:(\d+)m)?(\d+)s$/.exec(times);
  if (!every) return times;
  const [, hours = 0, minutes = 0, rest] = every;
  const seconds = Number(hours) * 3_600 + Number(minutes) * 60 + Number(rest);
  const [unit, size] = UNITS.find(([, size]) => seconds % size === 0)!;
  if (seconds === size) return t(`schedules.every.${unit}`);
  return t('schedules.every', {
    time: new Intl.NumberFormat(language.value, { style: 'unit', unit, unitDisplay: 'long' }).format(seconds / size),
  });
}
