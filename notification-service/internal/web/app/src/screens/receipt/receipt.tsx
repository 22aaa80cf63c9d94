import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { Failure, must, reportService, type Contact, type Outlook, type Report } from '../../api/client';
import { number, t, tn } from '../../lang/receipt';
import { t as say } from '../../lang/privacy';
import type { Position } from '../../map/address';
import { FirstPhoto } from '../../photos/first-photo';
import { config } from '../../state/config';
import { addThisDevice, canBeNotified, thisDevice } from '../../state/device';
import { metresTo, reportsNear } from '../../state/near';
import { handOver } from '../../state/handover';
import { isMailed, readContact, switchOn } from '../../state/notify';
import { may, session } from '../../state/session';
import { useAct } from '../../ui/act';
import { Badge } from '../../ui/badge';
import { Icon } from '../../ui/icons';
import { Fault } from '../../ui/problem';
import { reference } from '../../ui/reference';
import { go, href, route } from '../../ui/router';
import { dayName } from '../../ui/time';
import { NoPage } from '../no-page';

/** Neighbours within so many metres may know of the same problems. */
const NEAR_M = 1_000;
const MAX_NEAR = 3;

/** The next steps once a report is filed. All of it is read by its id: a reload shows the same. */
export function FiledScreen({ path: [, id = ''] }: { path: string[] }) {
  const [report, setReport] = useState<Report>();
  const [outlook, setOutlook] = useState<Outlook>();
  const [error, setError] = useState<unknown>();
  const params = { path: { id } };
  const load = () =>
    Promise.all([must(reportService.GET('/reports/{id}', { params })), must(reportService.GET('/reports/{id}/outlook', { params }))]).then(
      ([found, expected]) => {
        setReport(found);
        setOutlook(expected);
        setError(undefined);
      },
      setError,
    );
  useEffect(() => void load(), [id]);
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => heading.current?.focus({ preventScroll: true }), []);
  if (error instanceof Failure && ['not-found', 'invalid-input'].includes(error.kind)) {
    return <NoPage title="problem.not-found" text="report.none" />;
  }
  return (
    <div class="narrow">
      <h1 tabIndex={-1} ref={heading}>
        {t('new.filed')}
      </h1>
      <p>
        <strong>{t('filed.number', { reference: reference(id) })}</strong>
        <br />
        <span class="quiet">{t('filed.number-hint')}</span>
      </p>
      <Fault error={error} retry={() => void load()} />
      {report && outlook && (
        <>
          <section class="stack" aria-labelledby="next">
            <h2 id="next">{t('filed.next')}</h2>
            <p>
              {outlook.department_name ? t('filed.department', { department: outlook.department_name }) : t('filed.city')}{' '}
              <Due outlook={outlook} /> {t('filed.follow')}
            </p>
          </section>
          <div class="bar">
            <a class="button primary" href={href(`reports/${id}`)}>
              {t('filed.see')}
            </a>
            <a class="button" href={href('new')}>
              {t('filed.another')}
            </a>
          </div>
          {session.value?.guest && (
            <p class="note">
              {t('filed.guest')} <a href={href('settings')}>{t('filed.guest-keep')}</a>
            </p>
          )}
          {(config.mails || config.push) && <Notify report={report} />}
          <Near report={report} />
        </>
      )}
    </div>
  );
}

/** The expected day, unless it is over. */
function Due({ outlook: { due_at } }: { outlook: Outlook }) {
  const day = due_at === undefined ? undefined : new Date(due_at);
  return day && day.getTime() > Date.now() ? <strong>{t('filed.due', { day: dayName(day) })}</strong> : null;
}

/** Mails and notifications on this device, each switched on with one tap. */
function Notify({ report }: { report: Report }) {
  // Absent until it is read.
  const [contact, setContact] = useState<Contact | null>();
  const anonymous = report.privacy_level === 'anonymous';
  // Chosen while the report was written: what is on for others says nothing of an anonymous one.
  const [mailed, setMailed] = useState(route.value.query.has('notified'));
  const [pushed, setPushed] = useState(mailed);
  const [can, setCan] = useState(canBeNotified);
  const { busy, error, setError, run } = useAct();
  useEffect(() => {
    if (!config.mails) return;
    readContact().then(setContact, setError);
  }, []);
  const mail = () =>
    run(async () => {
      await switchOn('email', report);
      setMailed(true);
    });
  const push = () =>
    run(async () => {
      const added = await addThisDevice();
      setCan(canBeNotified());
      if (!added) return;
      await switchOn('push', report);
      setPushed(true);
    });
  const byMail = contact?.state === 'active' && (anonymous ? mailed : mailed || isMailed(contact));
  const here = thisDevice.value !== '' && (pushed || !anonymous);
  return (
    <section class="panel stack" aria-labelledby="notify" aria-busy={busy}>
      <h2 id="notify">{t('filed.notify')}</h2>
      {anonymous && <p class="quiet">{say('privacy.mail.hint')}</p>}
      <div class="bar">
        {contact?.state === 'active' && !byMail && (
          <button type="button" onClick={() => void mail()}>
            {t('filed.mail')}
          </button>
        )}
        {config.push && can === 'yes' && !here && (
          <button type="button" onClick={() => void push()}>
            {t('filed.push')}
          </button>
        )}
        {contact !== undefined && contact?.state !== 'active' && (
          <a class="button" href={href('settings')}>
            {t('filed.mail-add')}
          </a>
        )}
      </div>
      <div role="status">
        {byMail && (
          <p>
            <Icon name="check" /> {t('filed.mail-on')}
          </p>
        )}
        {here && (
          <p>
            <Icon name="check" /> {t('filed.push-on')}
          </p>
        )}
        {config.push && can === 'denied' && <p class="quiet">{t('filed.push-denied')}</p>}
      </div>
      <Fault error={error} />
    </section>
  );
}

/** The nearest open reports of others: a vote for one of them is one tap away. */
function Near({ report }: { report: Report }) {
  const { id, latitude, longitude } = report;
  const [near, setNear] = useState<Report[]>([]);
  useEffect(() => {
    if (latitude === undefined || longitude === undefined) return;
    reportsNear({ latitude, longitude }, NEAR_M, { status: ['pending', 'in_progress'], limit: 50 }).then(
      (found) => setNear(found.filter((each) => each.id !== id && !each.mine && !each.my_vote).slice(0, MAX_NEAR)),
      () => {}, // the page says enough without them
    );
  }, [id]);
  if (near.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="near">
      <h2 id="near">{t('filed.near')}</h2>
      <p class="quiet">{t(may('votes') ? 'filed.near-hint' : 'vote.sign-in')}</p>
      <ul class="rows">
        {near.map((each) => (
          <Neighbour key={each.id} report={each} at={{ latitude: latitude!, longitude: longitude! }} />
        ))}
      </ul>
    </section>
  );
}

function Neighbour({ report, at }: { report: Report; at: Position }) {
  const [score, setScore] = useState(report.score);
  const [supported, setSupported] = useState(false);
  const [error, setError] = useState<unknown>();
  const support = () => {
    if (may('votes')) return vote();
    handOver({ vote: { report: report.id, type: 'upvote' } });
    go('sign-in', { to: `reports/${report.id}` });
  };
  const vote = () =>
    must(reportService.POST('/reports/{id}/vote', { params: { path: { id: report.id } }, body: { vote_type: 'upvote' } })).then((vote) => {
      setScore(vote.score);
      setSupported(true);
      setError(undefined);
    }, setError);
  return (
    <li>
      <FirstPhoto photos={report.photos} />
      <div>
        <a href={href(`reports/${report.id}`)}>{report.title}</a>
        <span class="meta">
          <span>{t('duplicates.away', { metres: number(Math.round(metresTo(report, at))) })}</span>
          {report.address && <span>{report.address}</span>}
          <Badge status={report.status} />
          <span>
            {number(score)} {tn('score', score)}
          </span>
        </span>
      </div>
      <button type="button" data-on={supported} disabled={supported} onClick={() => void support()}>
        <Icon name={supported ? 'check' : 'up'} /> {t(supported ? 'filed.supported' : 'vote.upvote')}
      </button>
      <Fault error={error} />
    </li>
  );
}
