import { useState } from 'preact/hooks';

import { must, reportService, type Report } from '../api/client';
import { t } from '../lang/dialogue';
import { useAct } from '../ui/act';
import { Fault } from '../ui/problem';
import { dayName } from '../ui/time';

interface Props {
  id: string;
  verdict: NonNullable<Report['verdict']>;
  onDone(): Promise<void>;
}

/** Asks the reporter of a resolved report whether it is fixed: one tap, and words for officials if there are any. */
export function VerdictForm({ id, verdict: { fixed, text = '', until }, onDone }: Props) {
  const [words, setWords] = useState(text);
  const { busy, error, run, submits } = useAct();
  const [sent, setSent] = useState(false);
  const say = (verdict: boolean) => async () => {
    const body = { fixed: verdict, ...(words.trim() && { text: words.trim() }) };
    await must(reportService.PUT('/reports/{id}/verdict', { params: { path: { id } }, body }));
    setSent(fixed !== undefined);
    await onDone();
  };
  return (
    <section class="stack panel asked" aria-labelledby="verdict" aria-busy={busy}>
      <h2 id="verdict">{t('verdict')}</h2>
      <div class="bar">
        {[true, false].map((each) => (
          <button key={String(each)} type="button" aria-pressed={fixed === each} onClick={() => void run(say(each))}>
            {t(each ? 'verdict.yes' : 'verdict.no')}
          </button>
        ))}
      </div>
      <p role="status">{fixed !== undefined && t(fixed ? 'verdict.fixed' : 'verdict.disputed')}</p>
      <p class="quiet">{t('verdict.hint', { day: dayName(new Date(until)) })}</p>
      {fixed !== undefined && (
        <form class="stack" onSubmit={submits(say(fixed))}>
          <label class="field">
            <span>{t('verdict.text')}</span>
            <small>{t('verdict.text-hint')}</small>
            <textarea
              rows={2}
              maxLength={2000}
              value={words}
              onInput={(e) => {
                setWords(e.currentTarget.value);
                setSent(false);
              }}
            />
          </label>
          <p class="quiet" role="status">
            {sent && words && t('verdict.sent')}
          </p>
          <button>{t('verdict.send')}</button>
        </form>
      )}
      <Fault error={error} />
    </section>
  );
}
