import { useEffect, useMemo, useState } from 'preact/hooks';

import type { Task } from '../api/client';
import { t } from '../lang/dialogue';
import type { OpenWork } from '../state/work';
import { Fault } from '../ui/problem';
import { Items } from './items';
import { createDialogue } from './state';

/** Questions, answers and earlier verdicts, if there are any. */
export function OfficialPart({ task, open }: { task: Task; open: OpenWork }) {
  const dialogue = useMemo(() => createDialogue(task.id), [task.id]);
  const [error, setError] = useState<unknown>();
  const work = open.work.value;
  const acts = work?.acts.filter(({ action }) => action === 'ask').length ?? 0;
  const asked = task.question !== undefined || task.not_answered || acts > 0;
  // Reporters of duplicates may have disputed a resolution on which officials have decided.
  const judged = work?.verdict !== undefined || !!work?.duplicates.length;
  useEffect(() => {
    if (asked || judged) void dialogue.load();
    // An answer ends the question, and an act is a question or its end.
  }, [dialogue, asked, judged, task.question?.id, work]);
  // The last verdicts stand on top of the pane.
  const last = [work?.verdict, ...(work?.disputes ?? []).map(({ verdict }) => verdict)].map((verdict) => verdict?.given_at);
  const items = dialogue.items.value.filter(({ kind, created_at }) => kind !== 'verdict' || !last.includes(created_at));
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
