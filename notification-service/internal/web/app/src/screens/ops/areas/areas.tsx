import { useEffect, useState } from 'preact/hooks';

import { Failure, must, reportService, type AreaSettings, type ScheduleRun } from '../../../api/client';
import { number, t, tn } from '../../../lang/console';
import { toast } from '../../../state/toasts';
import { usePoll } from '../../../ui/poll';
import { Fault } from '../../../ui/problem';
import { href } from '../../../ui/router';
import { Acts } from '../acts';
import { languageName } from '../categories/fields';
import { Waiting } from '../waiting';

/** The greatest length that the service takes. */
const MAX_BYTES = 5 * 1024 * 1024;

/** The areas in use, the revision that they are of, and how far reports are sorted into them. */
interface Known extends AreaSettings {
  tag: string;
  run: ScheduleRun | undefined;
}

async function read(): Promise<Known> {
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
  const known = usePoll(read);
  const areas = known.value;
  return (
    <section class="stack narrow" aria-labelledby="areas">
      <h2 id="areas">{t('areas')}</h2>
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

/** A file that replaces all areas. It is for those that were shown when it was chosen. */
function Upload({ tag, languages, onDone }: UploadProps) {
  const [file, setFile] = useState<{ content: File; tag: string }>();
  const [error, setError] = useState<unknown>();
  const [sending, setSending] = useState(false);
  useEffect(() => setError(undefined), [file]);
  const tooLarge = (file?.content.size ?? 0) > MAX_BYTES;
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!file || tooLarge || sending) return;
    setSending(true);
    try {
      const { left_out = 0 } = await must(
        reportService.PUT('/reports/areas', {
          params: { header: { 'If-Match': file.tag } },
          headers: { 'Content-Type': 'application/geo+json' },
          body: file.content as never,
          bodySerializer: (body) => body,
        }),
      );
      setFile(undefined);
      toast(left_out > 0 ? tn('areas.saved-without', left_out) : t('areas.saved'));
      onDone();
    } catch (failure) {
      setError(failure);
    }
    setSending(false);
  };
  const faults = error instanceof Failure ? (error.problem?.errors ?? []) : [];
  return (
    <form class="panel stack" onSubmit={(event) => void submit(event)}>
      <label class="field">
        <span>{t('areas.file')}</span>
        <input
          key={tag}
          type="file"
          required
          accept=".geojson,.json,application/geo+json"
          aria-describedby="areas-file-hint"
          onChange={({ currentTarget: { files } }) => setFile(files?.[0] && { content: files[0], tag })}
        />
      </label>
      <p id="areas-file-hint" class="quiet">
        {t('areas.file-hint', { languages: languages.map(languageName).join(', ') })}
      </p>
      {tooLarge && (
        <p class="fault" role="alert">
          {t('areas.too-large')}
        </p>
      )}
      <Fault error={error} />
      {faults.length > 0 && (
        <ul class="faults">
          {faults.map(({ pointer, detail }) => (
            <li key={pointer}>
              {detail} <code>{pointer}</code>
            </li>
          ))}
        </ul>
      )}
      <p class="bar">
        <button class="primary" disabled={sending}>
          {t('areas.replace')}
        </button>
      </p>
    </form>
  );
}
