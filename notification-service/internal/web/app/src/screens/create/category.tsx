import { useEffect, useState } from 'preact/hooks';

import type { Category } from '../../api/client';
import { t } from '../../lang/i18n';
import { inUse, loadCategories, offered } from '../../state/categories';
import { draft, updateDraft } from '../../state/draft';
import { categoryIcon } from '../../ui/category';
import { groupBy } from '../../ui/group';
import { Icon } from '../../ui/icons';
import { WithPhones } from '../../ui/phones';
import { Fault } from '../../ui/problem';
import { FieldFault } from './field-fault';

/** So many are on one screen of a phone. */
const SEARCHED = 12;

/** The chosen category, if it only says where to turn: nothing is filed under it. */
export const signpost = (): Category | undefined =>
  offered.value.find(({ id, accepts_reports }) => id === draft.value.category_id && !accepts_reports);

/** The category that the problem is about, of the city's list. A tap on one opens the next step. */
export function PickCategory({ onPick }: { onPick(): void }) {
  const [error, setError] = useState<unknown>();
  const fetch = () => loadCategories().then(() => setError(undefined), setError);
  useEffect(() => {
    if (inUse.value.length === 0) void fetch();
  }, []);
  return (
    <>
      <CategoryChoice
        all={offered.value}
        chosen={draft.value.category_id}
        onChoose={(id) => updateDraft({ category_id: id })}
        onPick={onPick}
      />
      <FieldFault pointers={['/category_id']} />
      <Fault error={error} retry={() => void fetch()} />
    </>
  );
}

interface Props {
  all: Category[];
  chosen: number | undefined;
  onChoose(id: number): void;
  /** Called when one that takes reports was pressed, and not only gone to by keys. */
  onPick?(): void;
}

/** Categories by picture, name and hint, under their groups. What a signpost says stands out once it is chosen. */
export function CategoryChoice({ all, chosen, onChoose, onPick }: Props) {
  const [wanted, setWanted] = useState('');
  const found = all.filter(({ id, name, hint, group }) => id === chosen || matches(`${name} ${hint} ${group}`, wanted));
  return (
    <>
      {all.length > SEARCHED && (
        <label class="search">
          <span class="hidden">{t('category.search')}</span>
          <Icon name="search" />
          <input type="search" placeholder={t('category.search')} value={wanted} onInput={(e) => setWanted(e.currentTarget.value)} />
        </label>
      )}
      <div class="stack category-groups" role="radiogroup" aria-label={t('category')}>
        {[...groupBy(found, ({ group }) => group)].map(([group, members]) => (
          <div key={group} role={group ? 'group' : undefined} aria-label={group || undefined}>
            {group && <h3 aria-hidden="true">{group}</h3>}
            <div class="options categories">
              {members.map((category) => (
                <Choice key={category.id} category={category} chosen={category.id === chosen} onChoose={onChoose} onPick={onPick} />
              ))}
            </div>
          </div>
        ))}
      </div>
      {all.length > 0 && found.length === 0 && <p class="quiet">{t('category.none')}</p>}
    </>
  );
}

/** A number in a hint can be called with a tap, which chooses nothing: it stands outside of the label. */
function Choice({ category: { id, name, hint, icon, accepts_reports, link }, chosen, onChoose, onPick }: ChoiceProps) {
  const instead = chosen && !accepts_reports;
  const press = (event: MouseEvent) => {
    if (event.detail === 0 || !onPick || !accepts_reports) return; // a key
    event.preventDefault(); // or the button in the label would be pressed as well
    onChoose(id);
    onPick();
  };
  return (
    <div class="category-choice">
      <label class="option" onClick={press}>
        <input
          type="radio"
          name="category"
          required
          checked={chosen}
          aria-describedby={instead ? `instead-${id}` : undefined}
          onChange={() => onChoose(id)}
        />
        <Icon name={categoryIcon(icon)} />
        <span>
          {name}
          {hint && !instead && <small>{hint}</small>}
        </span>
      </label>
      {instead && (
        <p class="note" id={`instead-${id}`} role="status">
          <strong>{t('category.signpost')}</strong> <WithPhones text={hint} /> {link && <a href={link}>{new URL(link).host}</a>}
        </p>
      )}
    </div>
  );
}

interface ChoiceProps {
  category: Category;
  chosen: boolean;
  onChoose(id: number): void;
  onPick: (() => void) | undefined;
}

function matches(text: string, wanted: string): boolean {
  const words = text.toLowerCase();
  return wanted
    .toLowerCase()
    .split(/\s+/)
    .every((word) => words.includes(word));
}
