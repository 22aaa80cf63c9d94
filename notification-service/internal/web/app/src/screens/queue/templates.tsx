import { must, reportService, STATUSES, type Status, type Template } from '../../api/client';
import { t } from '../../lang/queue';
import { saveTemplates } from '../../state/desk';
import { createEdited, useEdited } from '../../state/setting';
import { toast } from '../../state/toasts';
import { Discard } from '../../ui/discard';
import { Fault } from '../../ui/problem';
import { Skeleton } from '../../ui/skeleton';

export const edited = createEdited<Template[]>(async () => (await must(reportService.GET('/reports/templates'))).templates);

/** The templates of officials, to be written and changed. All are saved together. */
export function TemplatesScreen() {
  useEdited(edited);
  const all = edited.value.value;
  const error = edited.error.value;
  if (!all) return error ? <Fault error={error} retry={() => void edited.load()} /> : <Skeleton />;
  const setAll = edited.set;

  const change = (id: number, part: Partial<Template>) => setAll(all.map((each) => (each.id === id ? { ...each, ...part } : each)));
  const setStatus = (template: Template, status: string) => {
    const { status: _, ...rest } = template;
    setAll(all.map((each) => (each === template ? { ...rest, ...(status && { status: status as Status }) } : each)));
  };
  const submit = (event: Event) => {
    event.preventDefault();
    saveTemplates(all.map((each) => ({ ...each, title: each.title.trim(), text: each.text.trim() }))).then((saved) => {
      edited.show(saved);
      toast(t('templates.saved'));
    }, edited.fail);
  };
  return (
    <form class="stack narrow" onSubmit={submit}>
      <h2>{t('templates')}</h2>
      <p class="quiet">{t('templates.hint')}</p>
      {all.length === 0 && <p class="empty">{t('templates.none')}</p>}
      {all.map((template) => (
        <fieldset key={template.id} class="panel bare">
          <legend class="hidden">{template.title || t('template')}</legend>
          <label class="field">
            <span>{t('templates.title')}</span>
            <input
              required
              maxLength={100}
              pattern=".*\S.*"
              value={template.title}
              onInput={(event) => change(template.id, { title: event.currentTarget.value })}
            />
          </label>
          <label class="field">
            <span>{t('templates.status')}</span>
            <select value={template.status ?? ''} onChange={(event) => setStatus(template, event.currentTarget.value)}>
              <option value="">{t('templates.any')}</option>
              {STATUSES.map((status) => (
                <option key={status} value={status}>
                  {t(`status.${status}`)}
                </option>
              ))}
            </select>
          </label>
          <label class="field">
            <span>{t('templates.text')}</span>
            <textarea
              rows={3}
              required
              maxLength={2000}
              value={template.text}
              onInput={(event) => change(template.id, { text: event.currentTarget.value })}
            />
          </label>
          <p>
            <button type="button" class="danger-quiet" onClick={() => setAll(all.filter((each) => each !== template))}>
              {t('templates.remove')}
            </button>
          </p>
        </fieldset>
      ))}
      <Fault error={error} />
      <p class="bar">
        <button type="button" onClick={() => setAll([...all, { id: Math.max(0, ...all.map(({ id }) => id)) + 1, title: '', text: '' }])}>
          {t('templates.add')}
        </button>
        <button class="primary">{t('templates.save')}</button>
        <Discard edited={edited} />
      </p>
    </form>
  );
}
