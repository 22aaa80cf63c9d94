import { useEffect, useRef, useState } from 'preact/hooks';

import { STATUSES } from '../../api/client';
import { number, t } from '../../lang/i18n';
import type { Filters } from '../../state/list';
import { CategoryOptions } from '../../ui/category';
import { Icon } from '../../ui/icons';
import { setQuery } from '../../ui/router';

/** After a pause of this length the search begins. */
const TYPED_MS = 300;

/** The orders of the list; near needs to know where the reader is. */
export const ORDERS = ['newest', 'near', 'score', 'changed'] as const;
export type Sorting = (typeof ORDERS)[number];

/** Whether the list has less than everything. */
export const isNarrowed = ({ status, category, q, bbox }: Filters) => status.length + category.length > 0 || q + bbox !== '';

/**
 * The filters of the list. They are in the address, so that it can be shared. A phone
 * shows the search and the order; the others come when they are asked for.
 */
export function FilterBar({ filters, sorting }: { filters: Filters; sorting: Sorting }) {
  const [open, setOpen] = useState(false);
  const chosen = filters.status.length + filters.category.length;
  const toggle = (status: string, on: boolean) =>
    setQuery({ status: STATUSES.filter((s) => (s === status ? on : filters.status.includes(s))).join(',') });
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <Search q={filters.q} />
      <label class="sorting">
        <span class="hidden">{t('sort')}</span>
        <select value={sorting} onChange={({ currentTarget: { value } }) => setQuery({ sort: value === 'newest' ? '' : value })}>
          {ORDERS.filter((order) => order !== 'near' || 'geolocation' in navigator).map((order) => (
            <option key={order} value={order}>
              {t(`sort.${order}`)}
            </option>
          ))}
        </select>
      </label>
      <button type="button" class="filter-toggle" aria-expanded={open} aria-controls="filter-set" onClick={() => setOpen(!open)}>
        {t('filters')}
        {chosen > 0 && ` (${number(chosen)})`}
      </button>
      <div id="filter-set" class="filter-set" data-open={open}>
        <label class="category">
          <span class="hidden">{t('category')}</span>
          <select value={filters.category.join(',')} onChange={(event) => setQuery({ category: event.currentTarget.value })}>
            <option value="">{t('category.all')}</option>
            <CategoryOptions />
          </select>
        </label>
        <fieldset class="choices">
          <legend class="hidden">{t('status')}</legend>
          {STATUSES.map((status) => (
            <label key={status} class="chip">
              <input
                type="checkbox"
                checked={filters.status.includes(status)}
                onChange={(event) => toggle(status, event.currentTarget.checked)}
              />
              <span>{t(`status.${status}`)}</span>
            </label>
          ))}
        </fieldset>
        <button
          type="button"
          class="link clear"
          disabled={!isNarrowed(filters)}
          onClick={() => setQuery({ status: '', category: '', q: '', bbox: '' })}
        >
          {t('filters.clear')}
        </button>
      </div>
    </form>
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
