import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';

import { Failure, type Report } from '../../api/client';
import { t } from '../../lang/i18n';
import { hasPlace, Where } from '../../map/where';
import { Gallery } from '../../photos/gallery';
import { categoryName } from '../../state/categories';
import { config } from '../../state/config';
import { follow, followed, loadFollowed } from '../../state/follows';
import { markReport, notifications } from '../../state/notifications';
import { createReport, type OpenReport } from '../../state/report';
import { isOfficial, session } from '../../state/session';
import { toast } from '../../state/toasts';
import { Badge } from '../../ui/badge';
import { Icon } from '../../ui/icons';
import { Modal } from '../../ui/modal';
import { explain, Fault } from '../../ui/problem';
import { reference } from '../../ui/reference';
import { goBackTo, href } from '../../ui/router';
import { Time } from '../../ui/time';
import { useSubject } from '../../ui/title';
import { lazily } from '../../ui/lazily';
import { NoPage } from '../no-page';
import { Timeline } from './timeline';
import { Votes } from './votes';

const ForOfficials = lazily(async () => (await import('./for-officials')).ForOfficials, true);
const Comments = lazily(async () => (await import('../../comments/comments')).Comments);
const ReporterPart = lazily(async () => (await import('../../dialogue/reporter')).ReporterPart, true);
const HideNameForm = lazily(async () => (await import('./hide-name')).HideNameForm);
const CorrectForm = lazily(async () => (await import('./correct')).CorrectForm);
const WithdrawForm = lazily(async () => (await import('./withdraw')).WithdrawForm);
const AbuseForm = lazily(async () => (await import('../../moderation/abuse')).AbuseForm);

/** One report: what, where, its status and its history. */
export function ReportScreen({ path: [, id = ''] }: { path: string[] }) {
  const open = useMemo(() => createReport(id), [id]);
  useEffect(() => {
    void open.load();
    return open.watch();
  }, [open]);
  useSeen(id);
  const report = open.report.value;
  const votes = report && !report.hidden_reason && !isPrivate(report) && <Votes open={open} report={report} />;
  useSubject(report?.title);
  if (open.error.value instanceof Failure && ['not-found', 'invalid-input'].includes(open.error.value.kind)) {
    return <NoPage title="problem.not-found" text="report.none" />;
  }
  return (
    <article class="report">
      <a class="back" href={href('')} onClick={backToList}>
        <Icon name="back" /> {t('reports')}
      </a>
      {report ? (
        <>
          <div class="report-main">
            <Head open={open} report={report} />
            {report.hidden_reason && !isOfficial() && (
              <p class="note" role="status">
                {report.withdrawn_at ? t('report.withdrawn-mine') : t('report.hidden', { reason: report.hidden_reason })}
              </p>
            )}
            {report.mine && <ReporterPart open={open} report={report} />}
            <p class="story">{report.description}</p>
            {isOfficial() ? (
              <ForOfficials open={open} report={report}>
                {votes}
              </ForOfficials>
            ) : (
              <>
                <Gallery report={report} />
                {votes}
              </>
            )}
          </div>
          <aside class="stack">
            <Timeline history={open.history.value} />
            {hasPlace(report) && (
              <section aria-labelledby="where">
                <h2 id="where">{t('report.where')}</h2>
                <Where report={report} />
              </section>
            )}
          </aside>
        </>
      ) : (
        <h1 tabIndex={-1} class="quiet">
          {t(open.error.value ? 'report' : 'loading')}
        </h1>
      )}
      <div class="report-main">
        {report && config.comments && <Comments report={report} />}
        <Fault error={open.error.value} retry={() => void open.load()} />
      </div>
    </article>
  );
}

const isPrivate = ({ visibility }: Report) => visibility === 'officials';

function Head({ open, report }: { open: OpenReport; report: Report }) {
  return (
    <header>
      <h1 tabIndex={-1}>{report.title}</h1>
      <p class="meta">
        <span aria-live="polite">
          <Badge status={report.status} />
        </span>
        <span>{categoryName(report)}</span>
        <span>{report.privacy_level === 'anonymous' ? t('report.by-nobody') : t('report.by', { name: report.reporter_name ?? '' })}</span>
        <Time at={report.created_at} dated />
        {report.mine && <strong>{t('report.mine')}</strong>}
        {isPrivate(report) && <strong>{t('private')}</strong>}
        <span>
          {t('report.reference')} <code>{reference(report.id)}</code>
        </span>
      </p>
      <div class="bar">
        {session.value && !report.mine && !isPrivate(report) && <Follow id={report.id} />}
        {!isPrivate(report) && (
          <button type="button" onClick={() => void share(report)}>
            <Icon name="share" /> {t('report.share')}
          </button>
        )}
        {report.mine && report.privacy_level === 'public' && (
          <Asking name={t('hide-name')} title={t('hide-name.title')}>
            {(onClose) => <HideNameForm hide={open.hideName} onClose={onClose} />}
          </Asking>
        )}
        {report.mine && report.status === 'pending' && !report.hidden_reason && (
          <Asking name={t('correct-own')} title={t('correct-own.title')}>
            {(onClose) => <CorrectForm report={report} correct={open.correct} onClose={onClose} />}
          </Asking>
        )}
        {report.mine && report.status === 'pending' && !report.withdrawn_at && (
          <Asking name={t('withdraw')} title={t('withdraw.title')}>
            {(onClose) => <WithdrawForm withdraw={open.withdraw} onClose={onClose} />}
          </Asking>
        )}
        {!isOfficial() && session.value?.role !== 'auditor' && !report.mine && (
          <Asking name={t('abuse')} title={t('abuse')}>
            {(onClose) => <AbuseForm id={report.id} onClose={onClose} />}
          </Asking>
        )}
      </div>
    </header>
  );
}

/** Follows the report, or stops. Its reporter is notified anyway. */
function Follow({ id }: { id: string }) {
  const [busy, setBusy] = useState(false);
  useEffect(() => void loadFollowed().catch(() => {}), []);
  const follows = followed.value?.includes(id) ?? false;
  const change = async () => {
    setBusy(true);
    await follow(id, !follows).catch((error: unknown) => {
      const full = error instanceof Failure && error.kind === 'conflict';
      toast(full ? t('report.follow-full') : explain(error));
    });
    setBusy(false);
  };
  return (
    <button type="button" data-on={follows} aria-busy={busy} onClick={() => !busy && void change()}>
      <Icon name="star" filled={follows} /> {t(follows ? 'report.followed' : 'report.follow')}
    </button>
  );
}

interface AskingProps {
  name: string;
  title: string;
  children(onClose: () => void): ComponentChildren;
}

/** Opens a form in a dialog, which is there at once, whatever its form takes to load: nothing of the page moves. */
function Asking({ name, title, children }: AskingProps) {
  const [open, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <button type="button" class="link" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        {name}
      </button>
      {open && (
        <Modal title={title} onClose={close}>
          {children(close)}
        </Modal>
      )}
    </>
  );
}

/** By the device's own means, or else as a copied address. */
async function share({ title }: Report): Promise<void> {
  const url = location.origin + location.pathname;
  try {
    if ('share' in navigator) return await navigator.share({ title, url });
    await (navigator as Navigator).clipboard.writeText(url);
    toast(t('report.copied'));
  } catch {
    // A user who closes the device's list has decided not to.
  }
}

/** The list is found as it was left, with its filters. */
function backToList(event: MouseEvent): void {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return; // to another tab
  event.preventDefault();
  event.stopPropagation(); // the router follows what it sees
  goBackTo('');
}

/** Marks the notifications of the shown report as read. */
function useSeen(id: string): void {
  const fresh = notifications.value.filter((n) => n.report_id === id && !n.read).length;
  useEffect(() => {
    if (fresh > 0 && document.visibilityState === 'visible') markReport(id).catch(() => {});
  }, [id, fresh]);
}
