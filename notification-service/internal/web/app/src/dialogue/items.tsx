import type { DialogueItem } from '../api/client';
import { t } from '../lang/dialogue';
import { href } from '../ui/router';
import { dayOf, Time } from '../ui/time';

/** Questions, answers and verdicts, oldest first, and that nobody else reads them. */
export function Items({ items, forOfficials = false }: { items: DialogueItem[]; forOfficials?: boolean }) {
  return (
    <>
      <p class="quiet">{t(forOfficials ? 'dialogue.private.official' : 'dialogue.private')}</p>
      <ol class="timeline">
        {items.map((item) => (
          <li key={item.id}>
            <span class="badge">{speaker(item, forOfficials)}</span>
            <small>
              <Time at={item.created_at} dated />
            </small>
            {item.duplicate_id && <a href={href('queue', { status: 'all', report: item.duplicate_id })}>{t('dialogue.duplicate')}</a>}
            {item.text && <p class="said">{item.text}</p>}
            <State item={item} />
          </li>
        ))}
      </ol>
    </>
  );
}

function speaker({ kind, by, fixed }: DialogueItem, forOfficials: boolean): string {
  if (kind === 'verdict') return t(`dialogue.${fixed ? 'fixed' : 'not-fixed'}${forOfficials ? '.official' : ''}`);
  if (kind === 'answer') return t(forOfficials ? 'dialogue.answered.official' : 'dialogue.answered');
  return by ? t('dialogue.asked-by', { name: by.name }) : t('dialogue.asked');
}

/** The end of a question, unless the answer says it. */
function State({ item: { state, ends_on } }: { item: DialogueItem }) {
  if (!state || state === 'answered') return null;
  return <small>{state === 'open' ? t('dialogue.open', { day: dayOf(ends_on ?? '') }) : t(`dialogue.${state}`)}</small>;
}
