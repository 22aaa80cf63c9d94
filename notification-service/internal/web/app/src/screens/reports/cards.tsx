import type { ComponentChildren } from 'preact';
import { useComputed } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';

import type { Report } from '../../api/client';
import { number, t, tn } from '../../lang/i18n';
import { lights, lit } from '../../map/highlight';
import { FirstPhoto } from '../../photos/first-photo';
import { categoryName, categoryOf } from '../../state/categories';
import type { ReportList } from '../../state/list';
import { session } from '../../state/session';
import { Badge } from '../../ui/badge';
import { categoryIcon } from '../../ui/category';
import { Icon } from '../../ui/icons';
import { Fault } from '../../ui/problem';
import { href, route } from '../../ui/router';
import { Skeleton } from '../../ui/skeleton';
import { Time } from '../../ui/time';

/** The pages of a list of reports that were loaded. */
export function Cards({ list, empty }: { list: ReportList; empty: ComponentChildren }) {
  const reports = list.reports.value;
  const state = list.state.value;
  useEffect(markUsable, [state]);
  return (
    <div aria-busy={state === 'loading'} class="cards-box">
      <Fault error={list.error.value} retry={() => void list.more()} />
      {list.waiting.value > 0 && (
        <button type="button" class="fresh" onClick={() => void list.showWaiting()}>
          {tn('reports.fresh', list.waiting.value)}
        </button>
      )}
      {reports.length === 0 && state === 'loading' && <Skeleton />}
      {reports.length === 0 && state === 'ready' && <div class="empty stack">{empty}</div>}
      <ul class="cards">
        {reports.map((report) => (
          <Card key={report.id} report={report} />
        ))}
      </ul>
      {list.next.value && (
        <button type="button" class="wide" onClick={() => void list.more()}>
          {t('more')}
        </button>
      )}
    </div>
  );
}

/** Where nothing is filed yet, and what to do about it. */
export function Nothing({ text }: { text: string }) {
  return (
    <>
      <p>{text}</p>
      {session.value?.role !== 'operator' && session.value?.role !== 'auditor' && (
        <p>
          <a class="button primary" href={href('new')}>
            {t('new')}
          </a>
        </p>
      )}
    </>
  );
}

/** Marks in the browser's own timeline when the first list was drawn. */
function markUsable(): void {
  if (document.querySelector('.card') && performance.getEntriesByName('list').length === 0) performance.mark('list');
}

/** A report that is younger when its card is drawn has just arrived. */
const NEW_MS = 20_000;

/** The whole card leads to the report; it says where, which is what distinguishes reports. */
export function Card({ report, metres, children }: { report: Report; metres?: number; children?: ComponentChildren }) {
  const isLit = useComputed(() => lit.value?.id === report.id).value;
  useEffect(() => () => void (lit.peek()?.id === report.id && (lit.value = undefined)), []);
  const [isNew] = useState(() => Date.now() - Date.parse(report.created_at) < NEW_MS);
  return (
    <li class="card" data-lit={isLit} data-new={isNew} {...lights(report)}>
      <FirstPhoto photos={report.photos}>
        <span class="thumbnail">
          <Icon name={categoryIcon(categoryOf(report)?.icon ?? '')} />
        </span>
      </FirstPhoto>
      <div>
        <a href={href(`reports/${report.id}`)} class="whole">
          {report.title}
        </a>
        <p class="where">{[categoryName(report), report.address].filter(Boolean).join(' · ')}</p>
        <p class="meta">
          <Badge status={report.status} />
          {report.question && <strong>{t('question')}</strong>}
          {report.verdict && report.verdict.fixed === undefined && <strong>{t('verdict')}</strong>}
          {metres !== undefined && <span>{t('duplicates.away', { metres: number(Math.round(metres)) })}</span>}
          <Time at={report.created_at} />
          {report.score !== 0 && (
            <span>
              {number(report.score)} {tn('score', report.score)}
            </span>
          )}
          {report.mine && route.value.path[0] !== 'mine' && <span>{t('report.mine')}</span>}
          {report.visibility === 'officials' && <strong>{t('private')}</strong>}
          {report.hidden_reason && <strong>{t(report.withdrawn_at ? 'withdrawn' : 'moderation.hidden')}</strong>}
          {report.mine && report.privacy_level === 'anonymous' && <span>{t('privacy.anonymous')}</span>}
        </p>
        {report.hidden_reason && (
          <p class="quiet">{report.withdrawn_at ? t('report.withdrawn-mine') : t('report.hidden', { reason: report.hidden_reason })}</p>
        )}
        {children}
      </div>
    </li>
  );
}
