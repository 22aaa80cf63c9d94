import { useEffect, useState } from 'preact/hooks';

import { must, reportService, type Report } from '../api/client';
import { t } from '../lang/i18n';
import { followed, loadFollowed } from '../state/follows';
import { createList, noFilters } from '../state/list';
import { Badge } from '../ui/badge';
import { Fault } from '../ui/problem';
import { href } from '../ui/router';
import { Time } from '../ui/time';
import { Cards, Nothing } from './reports/cards';

const list = createList('mine', 'brief');

/** The user's own reports, also the anonymous ones, and those that the user follows. */
export function MineScreen() {
  useEffect(() => {
    list.load(noFilters);
    return list.watch();
  }, []);
  return (
    <div class="narrow">
      <h1 tabIndex={-1}>{t('mine')}</h1>
      <p class="quiet">{t('mine.private')}</p>
      <Cards list={list} empty={<Nothing text={t('mine.none')} />} />
      <Followed />
    </div>
  );
}

/** Each is fetched by itself: so many at a time. */
const AT_ONCE = 20;

function Followed() {
  const [reports, setReports] = useState<Report[]>([]);
  const [most, setMost] = useState(AT_ONCE);
  const [error, setError] = useState<unknown>();
  const load = () => loadFollowed().then(() => setError(undefined), setError);
  useEffect(() => void load(), []);
  const all = followed.value ?? [];
  useEffect(() => {
    const each = all
      .slice(0, most)
      .map((id) => must(reportService.GET('/reports/{id}', { params: { path: { id } } })).catch(() => undefined));
    void Promise.all(each).then((found) => setReports(found.filter((report) => report !== undefined)));
  }, [followed.value, most]);
  if (error) return <Fault error={error} retry={() => void load()} />;
  if (reports.length === 0) return null;
  return (
    <section class="stack">
      <h2>{t('followed')}</h2>
      <ul class="rows">
        {reports.map((report) => (
          <li key={report.id}>
            <a href={href(`reports/${report.id}`)}>{report.title}</a>
            <span class="meta">
              <Badge status={report.status} />
              <Time at={report.updated_at} />
            </span>
          </li>
        ))}
      </ul>
      {all.length > most && (
        <button type="button" class="wide" onClick={() => setMost(most + AT_ONCE)}>
          {t('more')}
        </button>
      )}
    </section>
  );
}
