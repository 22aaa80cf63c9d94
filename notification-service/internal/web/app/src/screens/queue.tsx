import { useEffect, useState } from 'preact/hooks';

import type { Report, Status } from '../api/client';
import { number, t, tn } from '../lang/i18n';
import { createList, noFilters } from '../state/list';
import { createReport } from '../state/report';
import { Badge, STATUSES } from '../ui/badge';
import { categoryName } from '../ui/category';
import { useRowFocus } from '../ui/focus';
import { Modal } from '../ui/modal';
import { Fault } from '../ui/problem';
import { href, route, setQuery } from '../ui/router';
import { Time } from '../ui/time';
import { StatusForm } from './report/status-form';

const list = createList('all');

/** The officials' work: reports of one status, the oldest first. */
export function QueueScreen() {
  const status = (STATUSES as readonly string[]).find((s) => s === route.value.query.get('status')) as Status | undefined;
  const shown = status ?? 'pending';
  const [moving, setMoving] = useState<string>();
  useEffect(() => list.watch(), []);
  useEffect(() => list.load({ ...noFilters, status: [shown], oldestFirst: true }), [shown]);
  const reports = list.reports.value.filter((report) => report.status === shown);
  const rowFocus = useRowFocus(reports.map(({ id }) => id).join(), moving);
  return (
    <>
      <h1 tabIndex={-1}>{t('queue')}</h1>
      <div class="views always" role="group" aria-label={t('status')}>
        {STATUSES.map((each) => (
          <button key={each} type="button" aria-pressed={each === shown} onClick={() => setQuery({ status: each })}>
            {t(`status.${each}`)}
          </button>
        ))}
      </div>
      <Fault error={list.error.value} retry={() => void list.refresh()} />
      <p class="quiet" role="status">
        {list.state.value === 'loading' ? t('loading') : tn(list.next.value ? 'queue.more' : 'queue.all', reports.length)}
      </p>
      <ul class="rows queue" {...rowFocus}>
        {reports.map((report) => (
          <Row key={report.id} report={report} onMove={() => setMoving(report.id)} />
        ))}
      </ul>
      {list.next.value && (
        <button type="button" class="wide" onClick={() => void list.more()}>
          {t('more')}
        </button>
      )}
      {moving && <ChangeStatus id={moving} onClose={() => setMoving(undefined)} />}
    </>
  );
}

function Row({ report, onMove }: { report: Report; onMove(): void }) {
  return (
    <li>
      <div>
        <a href={href(`reports/${report.id}`)}>{report.title}</a>
        <p class="meta">
          <Badge status={report.status} />
          <span>{categoryName(report.category_name)}</span>
          {report.address && <span>{report.address}</span>}
          <span>
            {number(report.score)} {tn('score', report.score)}
          </span>
          <Time at={report.created_at} />
        </p>
      </div>
      <button type="button" aria-haspopup="dialog" onClick={onMove} aria-label={`${t('change-status')}: ${report.title}`}>
        {t('change-status')}
      </button>
    </li>
  );
}

function ChangeStatus({ id, onClose }: { id: string; onClose(): void }) {
  const [open] = useState(() => createReport(id));
  useEffect(() => {
    void open.load();
    return open.watch();
  }, []);
  const report = open.report.value;
  return (
    <Modal title={report?.title ?? t('loading')} onClose={onClose}>
      <Fault error={open.error.value} />
      {report && (
        <>
          <p class="story">{report.description}</p>
          <StatusForm open={open} report={report} onDone={onClose} />
        </>
      )}
    </Modal>
  );
}
