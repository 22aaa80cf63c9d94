import type { ComponentChildren } from 'preact';

import type { Category } from '../api/client';
import { t } from '../lang/i18n';
import { categories } from '../state/categories';
import { groupBy } from './group';
import type { IconName } from './icons';

/** The pictures that a category can have. */
export const CATEGORY_ICONS = ['road', 'lamp', 'bin', 'spray', 'tree', 'drop', 'walk', 'car', 'paw', 'noise', 'dots'] as const;

/** The picture that a city's category names, or a neutral one. */
export function categoryIcon(name: string): IconName {
  return CATEGORY_ICONS.find((icon) => icon === name) ?? 'dots';
}

/** All categories to choose one from, under their groups; nothing new has one of the last group. */
export function CategoryOptions({ label = ({ name }) => name }: { label?: (category: Category) => string }) {
  const groups = groupBy(categories.value, ({ group, retired }) => (retired ? t('category.retired') : group));
  return (
    <>
      {[...groups].map(([group, members]) => (
        <Grouped key={group} name={group}>
          {members.map((category) => (
            <option key={category.id} value={category.id}>
              {label(category)}
            </option>
          ))}
        </Grouped>
      ))}
    </>
  );
}

function Grouped({ name, children }: { name: string; children: ComponentChildren }) {
  return name ? <optgroup label={name}>{children}</optgroup> : <>{children}</>;
}
