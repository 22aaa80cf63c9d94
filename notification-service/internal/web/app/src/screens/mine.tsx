import { useEffect, useState } from 'preact/hooks';

import { must, reportService, type Report } from '../api/client';
import { t } from '../lang/i18n';
import { followed, loadFollowed } from '../state/follows';
import { createList, noFilters } from '../state/list';
import { uniqueById } from '../state/unique';
import { Fault } from '../ui/problem';
import { Card, Cards, Nothing } from './reports/cards';

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

/** So many more at a time. */
const AT_ONCE = 20;

function Followed() {
  const [known, setKnown] = useState<Report[]>([]);
  const [most, setMost] = useState(AT_ONCE);
  const [error, setError] = useState<unknown>();
  const all = followed.value;
  const load = async () => {
    try {
      if (!all) return await loadFollowed();
      const id = all.slice(0, most).filter((each) => !known.some((report) => report.id === each));
      if (id.length > 0) {
        const { reports } = await must(reportService.GET('/reports', { params: { query: { id, limit: AT_ONCE, brief: true } } }));
        setKnown((before) => uniqueById([...before, ...reports]));
      }
      setError(undefined);
    } catch (failure) {
      setError(failure);
    }
  };
  useEffect(() => void load(), [all, most]);
  // One that is hidden is not among the answers, and is followed all the same.
  const reports = (all ?? []).flatMap((id) => known.filter((report) => report.id === id));
  if (reports.length === 0) return <Fault error={error} retry={() => void load()} />;
  return (
    <section class="stack">
      <h2>{t('followed')}</h2>
      <ul class="cards">
        {reports.map((report) => (
          <Card key={report.id} report={report} />
        ))}
      </ul>
      <Fault error={error} retry={() => void load()} />
      {all && all.length > most && (
        <button type="button" class="wide" onClick={() => setMost(most + AT_ONCE)}>
          {t('more')}
        </button>
      )}
    </section>
  );
}
