import { useEffect, useState } from 'preact/hooks';

import { must, reportService, type Report } from '../api/client';
import { t } from '../lang/dialogue';
import { notifications } from '../state/notifications';
import { href } from '../ui/router';
import { dayOf } from '../ui/time';

/** As many of one's own reports as are looked through, the latest first. */
const MOST = 100;

/** The user's reports about which the city has asked something: above all notifications, until there is an answer. */
export function OpenQuestions({ onClose }: { onClose(): void }) {
  const [asked, setAsked] = useState<Report[]>([]);
  const latest = notifications.value[0]?.id;
  useEffect(() => {
    let here = true;
    must(reportService.GET('/reports/mine', { params: { query: { limit: MOST, brief: true } } })).then(
      ({ reports }) => here && setAsked(reports.filter(({ question }) => question)),
      () => {}, // the notifications below say it, too
    );
    return () => {
      here = false;
    };
  }, [latest]);
  if (asked.length === 0) return null;
  return (
    <section class="stack asked panel" aria-labelledby="open-questions">
      <h3 id="open-questions">{t('question.open')}</h3>
      <ul class="groups">
        {asked.map(({ id, title, question }) => (
          <li key={id} class="group">
            <a href={href(`reports/${id}`)} onClick={onClose}>
              {title}
            </a>
            <p class="quiet">{t('dialogue.open', { day: dayOf(question?.ends_on ?? '') })}</p>
          </li>
        ))}
      </ul>
    </section>
  );
}
