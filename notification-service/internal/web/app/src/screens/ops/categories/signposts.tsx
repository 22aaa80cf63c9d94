import type { Signpost } from '../../../api/client';
import { t } from '../../../lang/console';
import { Choice, Field } from '../../../ui/field';
import { Acts } from '../acts';
import type { Row } from './draft';
import type { Editor } from './editor';
import { optionsOf, useAreas } from '../use-areas';
import { languageName } from './fields';

/** As much as the service takes. */
const MAX_TEXT = 500;
const MAX_LINK = 300;

/** Where a category is not the city's: by area, with where to turn instead in each language. */
export function SignpostFields({ editor, row }: { editor: Editor; row: Row }) {
  const areas = useAreas();
  const { signposts } = row;
  const languages = editor.languages.value;
  const set = (changed: Signpost[]) => editor.set(row.key, 'signposts', JSON.stringify(changed));
  const change = (at: number, part: Partial<Signpost>) => set(signposts.map((each, i) => (i === at ? { ...each, ...part } : each)));
  return (
    <fieldset class="bare stack">
      <legend>{t('categories.places')}</legend>
      <p class="quiet">{t('categories.places-hint')}</p>
      {signposts.map(({ area = '', texts }, at) => (
        <div key={at} class="panel stack">
          <Choice
            label={t('categories.places.area')}
            value={area}
            none={t('categories.places.outside')}
            options={optionsOf(areas, area)}
            onValue={(area) => change(at, { area })}
          />
          {languages.map((language) => {
            const said = texts.find((each) => each.language === language) ?? { language, text: '', link: '' };
            const write = (part: Partial<typeof said>) =>
              change(at, { texts: [...texts.filter((each) => each.language !== language), { ...said, ...part }] });
            const named = { language: languageName(language) };
            return (
              <div key={language} class="stack" lang={language}>
                <Field
                  label={t('categories.places.text', named)}
                  required
                  maxLength={MAX_TEXT}
                  value={said.text}
                  onValue={(text) => write({ text })}
                />
                <Field
                  label={t('categories.places.link', named)}
                  type="url"
                  maxLength={MAX_LINK}
                  value={said.link}
                  onValue={(link) => write({ link })}
                />
              </div>
            );
          })}
          <Acts>
            <p>
              <button type="button" class="danger-quiet" onClick={() => set(signposts.filter((_, i) => i !== at))}>
                {t('categories.places.remove')}
              </button>
            </p>
          </Acts>
        </div>
      ))}
      <Acts>
        <p>
          <button
            type="button"
            onClick={() => set([...signposts, { area: '', texts: languages.map((language) => ({ language, text: '', link: '' })) }])}
          >
            {t('categories.places.add')}
          </button>
        </p>
      </Acts>
    </fieldset>
  );
}
