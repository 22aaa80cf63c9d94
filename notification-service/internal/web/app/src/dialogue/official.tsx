import { useEffect, useMemo, useState } from 'preact/hooks';

import type { Task } from '../api/client';
import { t } from '../lang/dialogue';
import type { OpenWork } from '../state/work';
import { Fault } from '../ui/problem';
import { Items } from './items';
import { createDialogue } from './state';

/** Questions and answers, if anything was asked. */
export function OfficialPart({ task, open }: { task: Task; open: OpenWork }) {
  const dialogue = useMemo(() => createDialogue(task.id), [task.id]);
  const [error, setError] = useState<unknown>();
  const acts = open.work.value?.acts.filter(({ action }) => action === 'ask').length ?? 0;
  const asked = task.question !== undefined || task.not_answered || acts > 0;
  useEffect(() => {
    if (asked) void dialogue.load();
    // An answer ends the question, and an act is a question or its end.
  }, [dialogue, asked, task.question?.id, open.work.value]);
  const items = dialogue.items.value;
  const { question } = task;
  if (items.length === 0 && !dialogue.error.value) return null;
  return (
    <section class="stack dialogue" aria-labelledby="dialogue">
      <h3 id="dialogue">{t('dialogue')}</h3>
      <Items items={items} forOfficials />
      <Fault error={dialogue.error.value} retry={() => void dialogue.load()} />
      {question && (
        <p>
          <button
            type="button"
            class="danger-quiet"
            onClick={() => open.withdrawQuestion(question.id).then(() => setError(undefined), setError)}
          >
            {t('dialogue.withdraw')}
          </button>
        </p>
      )}
      <Fault error={error} />
    </section>
  );
}
