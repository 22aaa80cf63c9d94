import { useEffect, useState } from 'preact/hooks';

import { must, reportService, type Department } from '../../api/client';
import { t } from '../../lang/console';
import { categories } from '../../state/categories';
import { createEdited, useEdited } from '../../state/setting';
import { toast } from '../../state/toasts';
import { Discard } from '../../ui/discard';
import { Fault } from '../../ui/problem';
import { Acts, Fields } from './acts';

export const edited = createEdited<Department[]>(async () => (await must(reportService.GET('/reports/departments'))).departments);

/** An area as the lists here show it. */
interface Area {
  code: string;
  name: string;
}

/** The city's departments, and which of them get the reports of which category and area. All are saved together. */
export function Departments() {
  useEdited(edited);
  const [areas, setAreas] = useState<Area[]>([]);
  useEffect(() => {
    must(reportService.GET('/areas', { params: { query: { geometry: 'none' } } }))
      .then(({ features }) => setAreas(features.map(({ properties }) => properties)))
      .catch(() => {}); // without names their codes are shown
  }, []);
  const all = edited.value.value;
  const error = edited.error.value;
  if (!all) return <Fault error={error} retry={() => void edited.load()} />;
  const setAll = edited.set;

  const change = (id: number, part: Partial<Department>) => setAll(all.map((each) => (each.id === id ? { ...each, ...part } : each)));
  /** A category goes to one department: it leaves the one that had it. */
  const route = (category: number, to: number, on: boolean) =>
    setAll(
      all.map((each) => {
        const others = each.category_ids.filter((id) => id !== category);
        return { ...each, category_ids: on && each.id === to ? [...others, category] : others };
      }),
    );
  const submit = (event: Event) => {
    event.preventDefault();
    const body = { departments: all.map((each) => ({ ...each, name: each.name.trim() })) };
    must(reportService.PUT('/reports/departments', { body })).then(({ departments }) => {
      edited.show(departments);
      toast(t('departments.saved'));
    }, edited.fail);
  };
  return (
    <form class="stack narrow" onSubmit={submit}>
      <h2>{t('departments')}</h2>
      <p class="quiet">{t('departments.hint')}</p>
      {all.length === 0 && <p class="empty">{t('departments.none')}</p>}
      <Fields>
        {all.map(({ id, name, category_ids, routes }) => (
          <fieldset key={id} class="panel bare">
            <legend class="hidden">{name || t('work.department')}</legend>
            <label class="field">
              <span>{t('departments.name')}</span>
              <input
                required
                maxLength={100}
                pattern=".*\S.*"
                value={name}
                onInput={(event) => change(id, { name: event.currentTarget.value })}
              />
            </label>
            <fieldset class="choices">
              <legend>{t('departments.categories')}</legend>
              {categories.value
                .filter(({ id, retired, accepts_reports }) => (!retired && accepts_reports) || category_ids.includes(id))
                .map((category) => (
                  <label key={category.id} class="chip">
                    <input
                      type="checkbox"
                      checked={category_ids.includes(category.id)}
                      onChange={(event) => route(category.id, id, event.currentTarget.checked)}
                    />
                    <span>{category.name}</span>
                  </label>
                ))}
            </fieldset>
            {(areas.length > 0 || routes.length > 0) && (
              <Routes areas={areas} routes={routes} onChange={(changed) => change(id, { routes: changed })} />
            )}
            <Acts>
              <p>
                <button type="button" class="danger-quiet" onClick={() => setAll(all.filter((each) => each.id !== id))}>
                  {t('departments.remove')}
                </button>
              </p>
            </Acts>
          </fieldset>
        ))}
      </Fields>
      <Fault error={error} />
      <Acts>
        <p class="bar">
          <button
            type="button"
            onClick={() => setAll([...all, { id: Math.max(0, ...all.map(({ id }) => id)) + 1, name: '', category_ids: [], routes: [] }])}
          >
            {t('departments.add')}
          </button>
          <button class="primary">{t('departments.save')}</button>
          <Discard edited={edited} />
        </p>
      </Acts>
    </form>
  );
}

interface RoutesProps {
  areas: Area[];
  routes: Department['routes'];
  onChange(routes: Department['routes']): void;
}

/** The areas whose reports a department gets: those of a category, or what no category sends anywhere. */
function Routes({ areas, routes, onChange }: RoutesProps) {
  const put = (index: number, route: Department['routes'][number]) => onChange(routes.map((each, i) => (i === index ? route : each)));
  const known = [
    ...areas,
    ...routes.filter(({ area }) => !areas.some(({ code }) => code === area)).map(({ area }) => ({ code: area, name: area })),
  ];
  return (
    <fieldset class="choices">
      <legend>{t('departments.routes')}</legend>
      {routes.map(({ area, category_id = 0 }, index) => (
        <p key={index} class="bar">
          <select
            aria-label={t('departments.route-area')}
            value={area}
            onChange={({ currentTarget: { value } }) => put(index, { ...routes[index]!, area: value })}
          >
            {known.map(({ code, name }) => (
              <option key={code} value={code}>
                {name}
              </option>
            ))}
          </select>
          <select
            aria-label={t('departments.route-category')}
            value={String(category_id)}
            onChange={({ currentTarget: { value } }) => put(index, { area, ...(Number(value) > 0 && { category_id: Number(value) }) })}
          >
            <option value="0">{t('departments.route-rest')}</option>
            {categories.value.map(({ id, name }) => (
              <option key={id} value={String(id)}>
                {name}
              </option>
            ))}
          </select>
          <Acts>
            <button type="button" class="danger-quiet" onClick={() => onChange(routes.filter((_, i) => i !== index))}>
              {t('departments.route-remove')}
            </button>
          </Acts>
        </p>
      ))}
      <Acts>
        {areas[0] && (
          <button type="button" onClick={() => onChange([...routes, { area: areas[0]!.code }])}>
            {t('departments.route-add')}
          </button>
        )}
      </Acts>
    </fieldset>
  );
}
