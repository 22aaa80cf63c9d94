import { useEffect, useState } from 'preact/hooks';

import { t } from '../../lang/i18n';
import { categories, loadCategories } from '../../state/categories';
import { draft, updateDraft } from '../../state/draft';
import { categoryIcon, categoryName } from '../../ui/category';
import { Icon } from '../../ui/icons';
import { Fault } from '../../ui/problem';
import { FieldFault } from './field-fault';

/** With fewer one sees them all at a glance. */
const SEARCHED = 8;

/** What the problem is about: one of the city's categories, by picture and name. */
export function PickCategory() {
  const [wanted, setWanted] = useState('');
  const [error, setError] = useState<unknown>();
  const fetch = () => loadCategories().then(() => setError(undefined), setError);
  useEffect(() => {
    if (categories.value.length === 0) void fetch();
  }, []);
  const chosen = draft.value.category_id;
  const all = categories.value.map((category) => ({ ...category, shown: categoryName(category.name) }));
  const found = all.filter(({ id, shown, description }) => id === chosen || matches(`${shown} ${description}`, wanted));
  return (
    <>
      {all.length > SEARCHED && (
        <label class="search">
          <span class="hidden">{t('category.search')}</span>
          <Icon name="search" />
          <input type="search" placeholder={t('category.search')} value={wanted} onInput={(e) => setWanted(e.currentTarget.value)} />
        </label>
      )}
      <div class="options categories" role="radiogroup" aria-label={t('category')}>
        {found.map(({ id, name, shown }) => (
          <label key={id} class="option">
            <input type="radio" name="category" required checked={chosen === id} onChange={() => updateDraft({ category_id: id })} />
            <Icon name={categoryIcon(name)} />
            <span>{shown}</span>
          </label>
        ))}
      </div>
      {all.length > 0 && found.length === 0 && <p class="quiet">{t('category.none')}</p>}
      <FieldFault pointers={['/category_id']} />
      <Fault error={error} retry={() => void fetch()} />
    </>
  );
}

function matches(text: string, wanted: string): boolean {
  const words = text.toLowerCase();
  return wanted
    .toLowerCase()
    .split(/\s+/)
    .every((word) => words.includes(word));
}
