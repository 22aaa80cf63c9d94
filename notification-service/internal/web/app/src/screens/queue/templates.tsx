import { must, reportService, STATUSES, type Status, type Template } from '../../api/client';
import { t } from '../../lang/queue';
import { saveTemplates } from '../../state/desk';
import { createEdited } from '../../state/setting';
import { Choice, Field, Lines } from '../../ui/field';
import { SettingList } from '../ops/setting-form';

export const edited = createEdited<Template[]>(async () => (await must(reportService.GET('/reports/templates'))).templates);

const trimmed = ({ title, text, ...rest }: Template): Template => ({ ...rest, title: title.trim(), text: text.trim() });

/** The templates of officials, to be written and changed. */
export function TemplatesScreen() {
  return (
    <section class="stack">
      <h2>{t('templates')}</h2>
      <SettingList
        edited={edited}
        put={(all) => saveTemplates(all.map(trimmed))}
        hint={t('templates.hint')}
        none={t('templates.none')}
        add={t('templates.add')}
        remove={t('templates.remove')}
        save={t('templates.save')}
        saved={t('templates.saved')}
        blank={(id) => ({ id, title: '', text: '' })}
        nameOf={({ title }) => title || t('template')}
      >
        {(template, change) => (
          <>
            <Field label={t('templates.title')} required maxLength={100} value={template.title} onValue={(title) => change({ title })} />
            <Choice
              label={t('templates.status')}
              value={template.status ?? ''}
              none={t('templates.any')}
              options={STATUSES.map((status) => [status, t(`status.${status}`)])}
              onValue={(status) => change({ status: (status || undefined) as Status })} // JSON leaves it out
            />
            <Lines
              label={t('templates.text')}
              rows={3}
              required
              maxLength={2000}
              value={template.text}
              onValue={(text) => change({ text })}
            />
          </>
        )}
      </SettingList>
    </section>
  );
}
