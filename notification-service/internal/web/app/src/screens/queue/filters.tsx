import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

import type { QueueCounts } from '../../api/client';
import { number, t, type Word } from '../../lang/queue';
import { categories } from '../../state/categories';
import { config } from '../../state/config';
import { areas, departments, me } from '../../state/desk';
import { ownOf } from '../../state/scope';
import { LEVELS, narrowing, NO_FILTERS, OF_REPORTERS, SOURCES, type QueueFilters } from '../../state/filters';
import { CategoryOptions } from '../../ui/category';
import { Options } from '../../ui/field';
import { Icon } from '../../ui/icons';
import { useMedia } from '../../ui/media';
import { Modal } from '../../ui/modal';
import { setQuery } from '../../ui/router';
import { dayOf } from '../../ui/time';
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

/** A filter of which one of several can be chosen. */
interface Field {
  name: 'category' | 'department' | 'area' | 'assignee' | 'overdue' | 'reporter' | 'source';
  label: Word;
  /** The word for no choice. */
  all: Word;
  options: Option[];
  /** The rest of the address with a choice. */
  more?: Record<string, string>;
}

/** The choices that an official makes all day; the others are behind a button, and on a phone all are. */
const AT_HAND: readonly string[] = ['category', 'department', 'assignee'] satisfies Field['name'][];
/** Filters that are on or off; the two last exclude each other. */
const SWITCHES = { comments: 'work.new-comments', hidden: 'moderation.hidden', withdrawn: 'withdrawn' } as const;

function fieldsOf(counts: QueueCounts | undefined): Field[] {
  const others = counts?.assignees.filter(({ id }) => id && id !== me().id) ?? [];
  const ofAssignee = (wanted?: string) => counts?.assignees.find(({ id }) => id === wanted)?.count;
  return [
    {
      name: 'category',
      label: 'category',
      all: 'category.all',
      options: categories.value.map(({ id, name }) => ({
        value: String(id),
        name,
        count: counts?.categories.find(({ category_id }) => category_id === id)?.count,
      })),
    },
    {
      name: 'department',
      label: 'work.department',
      all: 'work.department.all',
      options: ownOf(departments.value).map(({ id, name }) => ({
        value: String(id),
        name,
        count: counts?.departments.find(({ department_id }) => department_id === id)?.count,
      })),
    },
    {
      name: 'assignee',
      label: 'work.with',
      all: 'work.anyone',
      options: [
        { value: 'me', name: t('work.me', { name: me().name }), count: ofAssignee(me().id) },
        { value: 'none', name: t('work.nobody'), count: ofAssignee() },
        ...others.map(({ id = '', name = id, count }) => ({ value: id, name, count })),
      ],
    },
    {
      name: 'area',
      label: 'work.in-area',
      all: 'work.in-area.all',
      options: areas.value.map(({ code, name }) => ({ value: code, name, count: counts?.areas.find(({ area }) => area === code)?.count })),
    },
    {
      name: 'overdue',
      label: 'work.overdue',
      all: 'work.overdue.all',
      options: LEVELS.map((level) => ({
        value: String(level),
        name: level === 1 ? t('work.overdue.any') : t('work.overdue.from', { level: number(level) }),
      })),
    },
    {
      name: 'reporter',
      label: 'work.reporter',
      all: 'work.reporter.all',
      options: OF_REPORTERS.map((value) => ({ value, name: t(`work.reporter.${value}`) })),
      more: { status: 'all' }, // of every status: what is disputed is resolved
    },
    {
      name: 'source',
      label: 'intake.source',
      all: 'intake.source.all',
      options: SOURCES.map((value) => ({ value, name: t(`intake.source.${value}`) })),
    },
  ];
}

/** The filters of the queue, all of them in the address: some at hand, the rest behind a button, and what is set of it beside that. */
export function FilterBar({ filters, counts, children }: Props) {
  const [open, setOpen] = useState(false);
  const roomy = useMedia('(width >= 48rem)');
  const fields = fieldsOf(counts);
  const isAtHand = ({ name }: { name: string }) => roomy && AT_HAND.includes(name);
  const chips = chipsOf(filters, fields).filter((chip) => !isAtHand(chip));
  return (
    <form class="filters work-filters" role="search" aria-label={t('work.filters')} onSubmit={(event) => event.preventDefault()}>
      <Search q={filters.q} />
      {fields.filter(isAtHand).map((field) => (
        <Choice key={field.name} field={field} filters={filters} counts={counts} as="pick" />
      ))}
      {children}
      <button type="button" class="quiet-button" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        <Icon name="filter" /> {t('filters')}
      </button>
      {chips.map(({ name, text }) => (
        <button
          key={name}
          type="button"
          class="set-filter"
          aria-label={t('filters.remove', { filter: text })}
          onClick={() => setQuery({ [name]: '' })}
        >
          {text} <Icon name="close" />
        </button>
      ))}
      {narrowing(filters).length > 0 && (
        <button type="button" class="link clear" onClick={() => setQuery(NO_FILTERS)}>
          {t('filters.clear')}
        </button>
      )}
      {open && (
        <Modal title={t('filters')} onClose={() => setOpen(false)}>
          <div class="stack">
            <div class="options">
              {fields
                .filter((field) => !isAtHand(field) && (field.options.length > 0 || valueOf(filters, field)))
                .map((field) => (
                  <Choice key={field.name} field={field} filters={filters} counts={counts} as="field" />
                ))}
              {(['from', 'to'] as const).map((bound) => (
                <label key={bound} class="field">
                  <span>{t(`work.${bound}`)}</span>
                  <input type="date" value={filters[bound]} onChange={(event) => setQuery({ [bound]: event.currentTarget.value })} />
                </label>
              ))}
            </div>
            <p class="bar">
              {switches().map((name) => (
                <label key={name} class="check">
                  <input
                    type="checkbox"
                    checked={filters[name]}
                    onChange={({ currentTarget: { checked } }) =>
                      setQuery({ ...(name !== 'comments' && { hidden: '', withdrawn: '' }), [name]: checked ? '1' : '' })
                    }
                  />
                  {t(SWITCHES[name])}
                </label>
              ))}
            </p>
            <p class="bar">
              <button type="button" class="primary" onClick={() => setOpen(false)}>
                {t('filters.show')}
              </button>
            </p>
          </div>
        </Modal>
      )}
    </form>
  );
}

const switches = () => (Object.keys(SWITCHES) as (keyof typeof SWITCHES)[]).filter((name) => name !== 'comments' || config.comments);

const valueOf = (filters: QueueFilters, { name }: Field) => String(filters[name] || '');

/** The filters that are set besides the words, as they are read and taken back. */
function chipsOf(filters: QueueFilters, fields: Field[]): { name: string; text: string }[] {
  return narrowing(filters).flatMap((name) => {
    const field = fields.find((each) => each.name === name);
    if (field) {
      const chosen = valueOf(filters, field).split(',');
      return { name, text: chosen.map((value) => field.options.find((each) => each.value === value)?.name ?? value).join(', ') };
    }
    if (name === 'from' || name === 'to') return { name, text: `${t(`work.${name}`)}: ${dayOf(filters[name])}` };
    if (name in SWITCHES) return { name, text: t(SWITCHES[name as keyof typeof SWITCHES]) };
    return name === 'bbox' ? { name, text: t('map.only-here') } : [];
  });
}

const counted = (name: string, count: number | undefined) => (count === undefined ? name : `${name} (${number(count)})`);

interface ChoiceProps extends Props {
  field: Field;
  /** How it looks: as text, or as a field with its name above. */
  as: 'pick' | 'field';
}

function Choice({ field, filters, counts, as }: ChoiceProps) {
  const { name, label, all, options, more } = field;
  const value = valueOf(filters, field);
  return (
    <label class={as}>
      <span class={as === 'pick' ? 'hidden' : undefined}>{t(label)}</span>
      <select
        value={value}
        data-on={value !== ''}
        onChange={({ currentTarget: { value } }) => setQuery({ [name]: value, ...(value && more) })}
      >
        <option value="">{t(all)}</option>
        {name === 'category' ? (
          <CategoryOptions
            label={({ id, name }) => counted(name, counts?.categories.find(({ category_id }) => category_id === id)?.count)}
          />
        ) : (
          <Options of={options.map(({ value, name, count }) => [value, counted(name, count)])} />
        )}
      </select>
    </label>
  );
}
