import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { STATUSES, type Status } from '../../api/client';
import { t } from '../../lang/i18n';
import type { Filters } from '../../state/list';
import { CategoryOptions } from '../../ui/category';
import { Icon } from '../../ui/icons';
import { setQuery } from '../../ui/router';

/** After a pause of this length the search begins. */
const TYPED_MS = 300;

/** The orders of the list; near needs to know where the reader is. */
export const ORDERS = ['newest', 'near', 'score', 'changed'] as const;
export type Sorting = (typeof ORDERS)[number];

/** The statuses that one may choose at once, as the address has them. */
const OPEN = 'pending,in_progress';

/** Whether the list has less than everything. */
export const isNarrowed = ({ status, category, q, bbox }: Filters) => status.length + category.length > 0 || q + bbox !== '';

const clearFilters = () => setQuery({ status: '', category: '', q: '', bbox: '' });

interface Props {
  filters: Filters;
  sorting: Sorting;
  /** The area that the map shows. */
  area: string | undefined;
  children: ComponentChildren;
}

/** The filters of the list, as text. They are in the address, so that it can be shared. */
export function FilterBar({ filters, sorting, area, children }: Props) {
  const status = filters.status.join();
  const nameOf = (statuses: string) =>
    statuses === OPEN
      ? t('filters.open')
      : statuses
          .split(',')
          .map((each) => t(`status.${each as Status}`))
          .join(', ');
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <Search q={filters.q} />
      {children}
      <div class="picks">
        <Pick label={t('sort')} value={sorting} choose={(sort) => setQuery({ sort: sort === 'newest' ? '' : sort })}>
          {ORDERS.filter((order) => order !== 'near' || 'geolocation' in navigator).map((order) => (
            <option key={order} value={order}>
              {t(`sort.${order}`)}
            </option>
          ))}
        </Pick>
        <Pick label={t('category')} value={filters.category.join()} choose={(category) => setQuery({ category })}>
          <option value="">{t('category.all')}</option>
          <CategoryOptions />
        </Pick>
        <Pick label={t('status')} value={status} choose={(status) => setQuery({ status })}>
          <option value="">{t('filters.all-statuses')}</option>
          {[...new Set([OPEN, ...STATUSES, ...(status ? [status] : [])])].map((each) => (
            <option key={each} value={each}>
              {nameOf(each)}
            </option>
          ))}
        </Pick>
        <label class="check only-here">
          <input
            type="checkbox"
            checked={filters.bbox !== ''}
            onChange={(event) => setQuery({ bbox: event.currentTarget.checked ? (area ?? '') : '' })}
          />
          {t('map.only-here')}
        </label>
        {isNarrowed(filters) && (
          <button type="button" class="link" onClick={clearFilters}>
            {t('filters.clear')}
          </button>
        )}
      </div>
    </form>
  );
}

/** A choice that looks like text, with a caret. */
function Pick({
  label,
  value,
  choose,
  children,
}: {
  label: string;
  value: string;
  choose(value: string): void;
  children: ComponentChildren;
}) {
  return (
    <label class="pick">
      <span class="hidden">{label}</span>
      <select value={value} data-on={value !== '' && value !== 'newest'} onChange={(event) => choose(event.currentTarget.value)}>
        {children}
      </select>
    </label>
  );
}

/** The field to search by words; what is typed gets into the address. */
export function Search({ q }: { q: string }) {
  const [typed, setTyped] = useState(q);
  const field = useRef<HTMLInputElement>(null);
  // The address may change by other means than typing.
  useEffect(() => {
    if (document.activeElement !== field.current) setTyped(q);
  }, [q]);
  useEffect(() => {
    if (typed.trim() === q) return;
    const timer = setTimeout(() => setQuery({ q: typed.trim() }), TYPED_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <label class="search">
      <span class="hidden">{t('search')}</span>
      <Icon name="search" />
      <input
        ref={field}
        type="search"
        maxLength={200}
        placeholder={t('search')}
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
    </label>
  );
}
