import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';

import { must, reportService, type MapPoints, type QueueCounts } from '../../api/client';
import { number, t } from '../../lang/queue';
import { Map } from '../../map/map';
import { config } from '../../state/config';
import { areas, departments, me } from '../../state/desk';
import { LEVELS, narrowing, NO_FILTERS, OF_REPORTERS, SOURCES, type QueueFilters } from '../../state/filters';
import { CategoryOptions } from '../../ui/category';
import { setQuery } from '../../ui/router';
import { Search } from '../reports/filters';

interface Props {
  filters: QueueFilters;
  /** How many reports each choice would show. */
  counts: QueueCounts | undefined;
  children?: ComponentChildren;
}

interface Option {
  value: string;
  name: string;
  count?: number | undefined;
}

/** The filters of the queue, all of them in the address. */
export function FilterBar({ filters, counts, children }: Props) {
  const { category, department, area, assignee, q, overdue, hidden, withdrawn, comments, source, reporter } = filters;
  const narrow = narrowing(filters);
  const more = narrow.some((name) => ['from', 'to', 'bbox', 'source', 'hidden', 'withdrawn'].includes(name));
  const mine = counts?.assignees.find(({ id }) => id === me().id)?.count;
  const others = counts?.assignees.filter(({ id }) => id && id !== me().id) ?? [];
  return (
    <form
      class="filters work-filters"
      data-narrowed={narrow.length > 0}
      role="search"
      aria-label={t('work.filters')}
      onSubmit={(event) => event.preventDefault()}
    >
      <Search q={q} />
      <Choice name="category" label={t('category')} value={category.join()} all={t('category.all')}>
        <CategoryOptions label={({ id, name }) => counted(name, counts?.categories.find(({ category_id }) => category_id === id)?.count)} />
      </Choice>
      <Choice
        name="department"
        label={t('work.department')}
        value={department.join()}
        all={t('work.department.all')}
        options={departments.value.map(({ id, name }) => ({
          value: String(id),
          name,
          count: counts?.departments.find(({ department_id }) => department_id === id)?.count,
        }))}
      />
      {(areas.value.length > 0 || area.length > 0) && (
        <Choice
          name="area"
          label={t('work.in-area')}
          value={area.join()}
          all={t('work.in-area.all')}
          options={areas.value.map(({ code, name }) => ({
            value: code,
            name,
            count: counts?.areas.find((each) => each.area === code)?.count,
          }))}
        />
      )}
      <Choice
        name="assignee"
        label={t('work.with')}
        value={assignee}
        all={t('work.anyone')}
        options={[
          { value: 'me', name: t('work.me', { name: me().name }), count: mine },
          { value: 'none', name: t('work.nobody'), count: counts?.assignees.find(({ id }) => !id)?.count },
          ...others.map(({ id = '', name = id, count }) => ({ value: id, name, count })),
        ]}
      />
      <Choice
        name="overdue"
        label={t('work.overdue')}
        value={overdue ? String(overdue) : ''}
        all={t('work.overdue.all')}
        options={LEVELS.map((level) => ({
          value: String(level),
          name: level === 1 ? t('work.overdue.any') : t('work.overdue.from', { level: number(level) }),
        }))}
      />
      <Choice
        name="reporter"
        label={t('work.reporter')}
        value={reporter}
        all={t('work.reporter.all')}
        options={OF_REPORTERS.map((each) => ({ value: each, name: t(`work.reporter.${each}`) }))}
        // Of every status: what is disputed is resolved.
        more={{ status: 'all' }}
      />
      {config.comments && (
        <label class="check">
          <input
            type="checkbox"
            checked={comments}
            onChange={(event) => setQuery({ comments: event.currentTarget.checked ? 'new' : '' })}
          />
          {t('work.new-comments')}
        </label>
      )}
      {children}
      <details class="more-filters" open={more}>
        <summary>{t('work.more-filters')}</summary>
        <div class="stack">
          <div class="bar">
            <Choice
              name="source"
              label={t('intake.source')}
              value={source}
              all={t('intake.source.all')}
              options={SOURCES.map((each) => ({ value: each, name: t(`intake.source.${each}`) }))}
            />
            {(['from', 'to'] as const).map((bound) => (
              <label key={bound} class="field">
                <span>{t(bound === 'from' ? 'work.from' : 'work.to')}</span>
                <input type="date" value={filters[bound]} onChange={(event) => setQuery({ [bound]: event.currentTarget.value })} />
              </label>
            ))}
            <label class="check">
              <input
                type="checkbox"
                checked={hidden}
                onChange={(event) => setQuery({ hidden: event.currentTarget.checked ? '1' : '', withdrawn: '' })}
              />
              {t('moderation.hidden')}
            </label>
            <label class="check">
              <input
                type="checkbox"
                checked={withdrawn}
                onChange={(event) => setQuery({ withdrawn: event.currentTarget.checked ? '1' : '', hidden: '' })}
              />
              {t('withdrawn')}
            </label>
          </div>
          <Area filters={filters} />
        </div>
      </details>
      <button type="button" class="link clear" disabled={narrow.length === 0} onClick={() => setQuery(NO_FILTERS)}>
        {t('filters.clear')}
      </button>
    </form>
  );
}

interface ChoiceProps {
  /** Of the filter, in the address. */
  name: string;
  label: string;
  value: string;
  /** The word for no choice. */
  all: string;
  options?: Option[];
  /** The rest of the address with a choice. */
  more?: Record<string, string>;
  /** Options that are not a plain list. */
  children?: ComponentChildren;
}

const counted = (name: string, count: number | undefined) => (count === undefined ? name : `${name} (${number(count)})`);

function Choice({ name, label, value, all, options = [], more = {}, children }: ChoiceProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={({ currentTarget: { value } }) => setQuery({ [name]: value, ...(value && more) })}>
        <option value="">{all}</option>
        {options.map(({ value, name, count }) => (
          <option key={value} value={value}>
            {counted(name, count)}
          </option>
        ))}
        {children}
      </select>
    </label>
  );
}

/** A map of what the filters show, to narrow them to a part of the city. */
function Area({ filters }: { filters: QueueFilters }) {
  const [open, setOpen] = useState(filters.bbox !== '');
  const [shown, setShown] = useState<{ bbox: string; zoom: number }>();
  const [found, setFound] = useState<MapPoints>();
  const { status, category, q } = filters;
  useEffect(() => {
    if (!open || !shown) return;
    const query = { ...shown, status, category, ...(q && { q }) };
    // Without its points the map still has the streets.
    must(reportService.GET('/map/points', { params: { query } })).then(setFound, () => setFound(undefined));
  }, [open, JSON.stringify([shown, status, category, q])]);
  const points = useMemo(() => found?.points.map(({ title, ...point }) => ({ ...point, label: title })), [found]);
  if (!open) {
    return (
      <p>
        <button type="button" onClick={() => setOpen(true)}>
          {t('work.area')}
        </button>
      </p>
    );
  }
  return (
    <div class="stack">
      <Map
        label={t('map.of-reports')}
        {...(points && { points })}
        {...(found && { clusters: found.clusters })}
        onMove={(bbox, zoom, byReader) => {
          setShown({ bbox, zoom });
          if (byReader && filters.bbox) setQuery({ bbox });
        }}
      />
      <label class="check">
        <input
          type="checkbox"
          checked={filters.bbox !== ''}
          onChange={(event) => setQuery({ bbox: event.currentTarget.checked ? (shown?.bbox ?? '') : '' })}
        />
        {t('map.only-here')}
      </label>
    </div>
  );
}
