import { useEffect, useState } from 'preact/hooks';

import { must, reportService, type AreaSettings, type Problem, type ScheduleRun } from '../../../api/client';
import { isWord, number, t, tn } from '../../../lang/console';
import { toast } from '../../../state/toasts';
import { useAct } from '../../../ui/act';
import { Choice } from '../../../ui/field';
import { usePoll } from '../../../ui/poll';
import { Fault } from '../../../ui/problem';
import { href } from '../../../ui/router';
import { Acts } from '../acts';
import { languageName } from '../categories/fields';
import { Faults } from '../faults';
import { Waiting } from '../waiting';
import { convert, featuresOf, guess, isReady, placeOf, propertiesOf, read, type Chosen } from './file';

/** The greatest length that the service takes. */
const MAX_BYTES = 5 * 1024 * 1024;

/** The areas in use, the revision that they are of, and how far reports are sorted into them. */
interface Known extends AreaSettings {
  tag: string;
  run: ScheduleRun | undefined;
}

async function readAreas(): Promise<Known> {
  let tag = '*';
  const settings = await must(
    reportService.GET('/reports/areas', { params: { query: { geometry: 'none' } } }).then((got) => {
      tag = got.response.headers.get('ETag') ?? '*';
      return got;
    }),
  );
  if (settings.located) return { ...settings, tag, run: undefined };
  const { schedules } = await must(reportService.GET('/admin/reports/schedules'));
  return { ...settings, tag, run: schedules.find(({ name }) => name === 'areas')?.latest };
}

/** The city's areas: which there are, a file that replaces them, and what is wrong with it. */
export function Areas() {
  const known = usePoll(readAreas);
  const areas = known.value;
  return (
    <section class="stack narrow" aria-label={t('areas')}>
      <p class="quiet">{t('areas.hint')}</p>
      {areas ? <Fault error={known.error} retry={known.refresh} /> : <Waiting error={known.error} retry={known.refresh} />}
      {areas && (
        <>
          <Progress known={areas} />
          <Acts>
            <Upload tag={areas.tag} languages={areas.languages} onDone={known.refresh} />
          </Acts>
          {areas.features.length === 0 && <p class="empty">{t('areas.none')}</p>}
          {areas.features.length > 0 && (
            <>
              <p>
                <a href="/reports/areas" download="areas.geojson">
                  {t('areas.download')}
                </a>
              </p>
              <table>
                <caption>{tn('areas.count', areas.features.length)}</caption>
                <thead>
                  <tr>
                    <th scope="col">{t('areas.code')}</th>
                    {areas.languages.map((language) => (
                      <th key={language} scope="col">
                        {languageName(language)}
                      </th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {areas.features.map(({ properties: { code, names } }) => (
                    <tr key={code}>
                      <th scope="row">
                        <code>{code}</code>
                      </th>
                      {areas.languages.map((language) => (
                        <td key={language} lang={language}>
                          {names[language]}
                        </td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </>
          )}
        </>
      )}
    </section>
  );
}

/** How far open reports are sorted into the areas. */
function Progress({ known: { located, run } }: { known: Known }) {
  if (located) return null;
  const running = run?.state === 'running' && run.total > 0;
  return (
    <p role="status" class="note">
      {running ? t('areas.moving', { done: number(run.done), total: number(run.total) }) : t('areas.waiting')}{' '}
      <a href={href('ops/schedules')}>{t('schedules')}</a>
    </p>
  );
}

interface UploadProps {
  tag: string;
  languages: string[];
  onDone(): void;
}

/** A file that was chosen, and the list that it is to replace. */
interface Content {
  file: File;
  tag: string;
  features: ReturnType<typeof featuresOf>;
  /** Where its codes and names are; absent where the service finds them. */
  chosen: Chosen | undefined;
}

/** A file that replaces all areas. It is for those that were shown when it was chosen. */
function Upload({ tag, languages, onDone }: UploadProps) {
  const [content, setContent] = useState<Content>();
  const { busy, error, setError, submits } = useAct();
  useEffect(() => setError(undefined), [content]);
  const tooLarge = (content?.file.size ?? 0) > MAX_BYTES;
  const take = async (file: File | undefined) => {
    if (!file) return setContent(undefined);
    const features = file.size > MAX_BYTES ? [] : featuresOf(await file.text());
    setContent({ file, tag, features, chosen: isReady(features) ? undefined : guess(features, languages) });
  };
  const submit = submits(async () => {
    if (!content || tooLarge) return;
    const { file, features, chosen } = content;
    const { left_out = 0 } = await must(
      reportService.PUT('/reports/areas', {
        params: { header: { 'If-Match': content.tag } },
        headers: { 'Content-Type': 'application/geo+json' },
        body: (chosen ? convert(features, chosen) : file) as never,
        bodySerializer: (body) => body,
      }),
    );
    setContent(undefined);
    toast(left_out > 0 ? tn('areas.saved-without', left_out) : t('areas.saved'));
    onDone();
  });
  return (
    <form class="panel stack" onSubmit={submit}>
      <label class="field">
        <span>{t('areas.file')}</span>
        <input
          key={tag}
          type="file"
          required
          accept=".geojson,.json,application/geo+json"
          aria-describedby="areas-file-hint"
          onChange={({ currentTarget: { files } }) => void take(files?.[0])}
        />
      </label>
      <p id="areas-file-hint" class="quiet">
        {t('areas.file-hint', { languages: languages.map(languageName).join(', ') })}
      </p>
      {content?.chosen && <Choose content={content} chosen={content.chosen} onChoose={(chosen) => setContent({ ...content, chosen })} />}
      {tooLarge && (
        <p class="fault" role="alert">
          {t('areas.too-large')}
        </p>
      )}
      <Faults error={error} told={(fault) => told(fault, content)} />
      <p class="bar">
        <button class="primary" disabled={busy}>
          {t('areas.replace')}
        </button>
      </p>
    </form>
  );
}

/** Which properties of the file have the codes and the names, with what that makes of its first areas. */
function Choose({ content: { features }, chosen, onChoose }: { content: Content; chosen: Chosen; onChoose(chosen: Chosen): void }) {
  const all = propertiesOf(features);
  if (all.length === 0) return null;
  const property = (label: string, value: string, choose: (name: string) => void) => (
    <Choice
      key={label}
      label={label}
      value={value}
      options={all.map((name) => [name, `${name}: ${String(features[0]?.properties?.[name])}`])}
      onValue={choose}
    />
  );
  return (
    <fieldset class="bare">
      <legend>{t('areas.choose')}</legend>
      <p class="quiet">{t('areas.choose-hint')}</p>
      <div class="options">
        {property(t('areas.code'), chosen.code, (code) => onChoose({ ...chosen, code }))}
        {Object.entries(chosen.names).map(([language, name]) =>
          property(t('areas.name-in', { language: languageName(language) }), name, (other) =>
            onChoose({ ...chosen, names: { ...chosen.names, [language]: other } }),
          ),
        )}
      </div>
      <ul class="quiet" aria-live="polite">
        {features.slice(0, SHOWN).map((feature, i) => {
          const { code, names } = read(feature, chosen);
          return (
            <li key={i}>
              <code>{code}</code> {[...new Set(Object.values(names))].join(' · ')}
            </li>
          );
        })}
        {features.length > SHOWN && <li>{tn('areas.more', features.length - SHOWN)}</li>}
      </ul>
    </fieldset>
  );
}

/** So many of a file's areas show what is chosen. */
const SHOWN = 4;

/** A fault in the reader's language, by the name of the area, with the ring and the point counted from 1. */
function told({ pointer, detail, code }: NonNullable<Problem['errors']>[number], content: Content | undefined): string {
  const key = `areas.fault.${code}`;
  if (!code || !isWord(key)) return detail;
  const { area, ring, point } = placeOf(pointer);
  const feature = area === undefined ? undefined : content?.features[area];
  const properties =
    feature && (content?.chosen ? read(feature, content.chosen) : (feature.properties as Partial<ReturnType<typeof read>> | null));
  const name =
    Object.values(properties?.names ?? {}).find(Boolean) ||
    properties?.code ||
    (area !== undefined && t('areas.number', { number: number(area + 1) }));
  const where = point !== undefined && t('areas.place', { ring: number((ring ?? 0) + 1), point: number(point + 1) });
  return [name && `${name}:`, t(key), where && `(${where})`].filter(Boolean).join(' ');
}
