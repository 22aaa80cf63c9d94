import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import type { Report } from '../api/client';
import { t } from '../lang/dialogue';
import { createChoice, MAX_PHOTOS, ofAnswer } from '../photos/choice';
import { Picker } from '../photos/picker';
import { config } from '../state/config';
import type { OpenReport } from '../state/report';
import { useAct } from '../ui/act';
import { Lines } from '../ui/field';
import { Fault } from '../ui/problem';
import { dayOf } from '../ui/time';
import { Items } from './items';
import { answerOn, createDialogue, sendAnswer, writeAnswer } from './state';
import { VerdictForm } from './verdict';

/**
 * The dialogue between the city and a reporter about a report: on top
 * the question that is open, then whether it is fixed, then what was said before.
 */
export function ReporterPart({ open, report }: { open: OpenReport; report: Report }) {
  const dialogue = useMemo(() => createDialogue(report.id), [report.id]);
  const question = report.question?.id;
  const { verdict } = report;
  useEffect(() => void dialogue.load(), [dialogue, question, verdict?.until, verdict?.fixed, verdict?.text]);
  const [answered, setAnswered] = useState(false);
  const said = answered && !question;
  const status = useRef<HTMLParagraphElement>(null);
  useLayoutEffect(() => {
    // The form that had the focus is gone: at no time does a key go to nothing.
    if (said) status.current?.focus();
  }, [said]);
  const items = dialogue.items.value;
  const asked = items.find(({ id }) => id === question);
  const current = verdict?.fixed !== undefined && items.findLast(({ kind }) => kind === 'verdict'); // the form has it
  const earlier = items.filter((item) => item !== asked && item !== current);
  return (
    <>
      {report.question && (
        <AnswerForm
          report={report}
          day={dayOf(report.question.ends_on)}
          question={asked?.text}
          onDone={open.load}
          onSent={() => setAnswered(true)}
        />
      )}
      <p class={said ? 'note' : undefined} role="status" tabIndex={-1} ref={status}>
        {said && t('question.sent')}
      </p>
      {verdict && <VerdictForm key={verdict.until} id={report.id} verdict={verdict} onDone={open.load} />}
      <Fault error={dialogue.error.value} retry={() => void dialogue.load()} />
      {earlier.length > 0 && (
        <details class="dialogue">
          <summary>{t('dialogue')}</summary>
          <Items items={earlier} />
        </details>
      )}
    </>
  );
}

interface Props {
  report: Report;
  /** The last one for an answer. */
  day: string;
  /** Absent until it is known. */
  question: string | undefined;
  onSent(): void;
  onDone(): Promise<void>;
}

function AnswerForm({ report, day, question, onSent, onDone }: Props) {
  const choice = useMemo(() => createChoice(ofAnswer(report.id)), [report.id]);
  useEffect(() => choice.open(), [choice]);
  const { text } = answerOn(report.id);
  const { busy, error, submits } = useAct();
  const free = config.photos ? MAX_PHOTOS - report.photos.length : 0;
  const submit = submits(async () => {
    if (await sendAnswer(report.id)) {
      await choice.send(report.id);
      onSent();
    }
    await onDone();
  });
  return (
    <form class="stack panel asked" onSubmit={submit} aria-labelledby="question" aria-busy={busy}>
      <h2 id="question">{t('question')}</h2>
      <p class="story">{question ?? t('loading')}</p>
      <p class="quiet">{t('question.hint', { day })}</p>
      <Lines
        label={t('question.answer')}
        rows={3}
        required
        maxLength={2000}
        value={text}
        onValue={(text) => writeAnswer(report.id, text)}
      />
      {free > 0 && (
        <div class="stack">
          <Picker choice={choice} free={free} hint={false} />
          {report.visibility === 'public' && <small class="quiet">{t('question.photos')}</small>}
        </div>
      )}
      <Fault error={error} />
      <button class="primary">{t('question.send')}</button>
    </form>
  );
}
