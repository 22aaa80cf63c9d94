import { must, reportService, type Department } from '../../api/client';
import { t } from '../../lang/console';
import { categories } from '../../state/categories';
import { createEdited } from '../../state/setting';
import { Field, Options } from '../../ui/field';
import { Acts } from './acts';
import { SettingList } from './setting-form';
import { optionsOf, useAreas, type Area } from './use-areas';

export const edited = createEdited<Department[]>(async () => (await must(reportService.GET('/reports/departments'))).departments);

/** The city's departments, and which of them get the reports of which category and area. */
export function Departments() {
  const areas = useAreas();
  const all = edited.value.value ?? [];
  const isTaken = (code: string) => code && all.filter((each) => each.code === code).length > 1;
  /** A category goes to one department: it leaves the one that had it. */
  const route = (category: number, to: number, on: boolean) =>
    edited.set(
      all.map((each) => {
        const others = each.category_ids.filter((id) => id !== category);
        return { ...each, category_ids: on && each.id === to ? [...others, category] : others };
      }),
    );
  return (
    <SettingList
      edited={edited}
      put={async (all) => {
        const body = { departments: all.map(({ code, ...each }) => ({ ...each, ...(code && { code }), name: each.name.trim() })) };
        return (await must(reportService.PUT('/reports/departments', { body }))).departments;
      }}
      hint={t('departments.hint')}
      none={t('departments.none')}
      add={t('departments.add')}
      remove={t('departments.remove')}
      save={t('departments.save')}
      saved={t('departments.saved')}
      ready={() => !all.some(({ code }) => isTaken(code))}
      blank={(id) => ({ id, code: '', name: '', category_ids: [], routes: [] })}
      nameOf={({ name }) => name || t('work.department')}
    >
      {({ id, code, name, category_ids, routes }, change) => (
        <>
          <Field label={t('departments.name')} required maxLength={100} value={name} onValue={(name) => change({ name })} />
          <Field
            label={t('departments.code')}
            hint={t('departments.code-hint')}
            title={t('departments.code-form')}
            pattern="[a-z0-9][a-z0-9_\-]*"
            maxLength={40}
            autocapitalize="none"
            spellcheck={false}
            value={code}
            onValue={(code) => change({ code })}
          >
            {isTaken(code) && (
              <small class="fault" role="alert">
                {t('departments.code-taken')}
              </small>
            )}
          </Field>
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
            <Routes areas={areas} routes={routes} onChange={(changed) => change({ routes: changed })} />
          )}
        </>
      )}
    </SettingList>
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
            <Options of={optionsOf(areas, area)} />
          </select>
          <select
            aria-label={t('departments.route-category')}
            value={String(category_id)}
            onChange={({ currentTarget: { value } }) => put(index, { area, ...(Number(value) > 0 && { category_id: Number(value) }) })}
          >
            <option value="0">{t('departments.route-rest')}</option>
            <Options of={categories.value.map(({ id, name }) => [id, name])} />
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
