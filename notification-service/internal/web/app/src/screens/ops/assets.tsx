import { useEffect, useState } from 'preact/hooks';

import { must, reportService, type AssetLayer, type Problem } from '../../api/client';
import { isWord, number, t, tn } from '../../lang/console';
import { categoryName, inUse } from '../../state/categories';
import { toast } from '../../state/toasts';
import { useAct } from '../../ui/act';
import { Choice, Field } from '../../ui/field';
import { Final } from '../../ui/final-form';
import { Modal } from '../../ui/modal';
import { usePoll } from '../../ui/poll';
import { Fault } from '../../ui/problem';
import { Time } from '../../ui/time';
import { Acts } from './acts';
import { Faults } from './faults';
import { Rows } from './rows';

/** A file without things, which removes a layer. */
const NOTHING = new Blob(['code,lat,lng\n'], { type: 'text/csv' });

/** Replaces the things of a layer by those of a file. */
function replace(layer: string, category: number, file: Blob, type: string) {
  return must(
    reportService.PUT('/reports/assets/{layer}', {
      params: { path: { layer }, query: { category } },
      headers: { 'Content-Type': type },
      body: file as never,
      bodySerializer: (body) => body,
    }),
  );
}

/** The city's things by layer: how many there are, a file that replaces one, and sheets of their codes. */
export function Assets() {
  const found = usePoll(async () => ({ items: (await must(reportService.GET('/reports/assets'))).layers }));
  const [removing, setRemoving] = useState<AssetLayer>();
  const [printing, setPrinting] = useState<string>();
  return (
    <div class="stack narrow">
      <p class="quiet">{t('assets.hint')}</p>
      <Rows found={found} none={t('assets.none')}>
        {(layer) => (
          <li key={layer.layer}>
            <div>
              <strong>{layer.layer}</strong>
              <p class="meta">
                <span>{tn('assets.count', layer.count)}</span>
                <span>{categoryName({ ...layer, category_name: String(layer.category_id) })}</span>
                <Time at={layer.changed_at} full />
              </p>
            </div>
            <Acts>
              <span class="bar">
                <button type="button" aria-haspopup="dialog" onClick={() => setPrinting(layer.layer)}>
                  {t('assets.sheet')}
                </button>
                <button type="button" class="danger-quiet" aria-haspopup="dialog" onClick={() => setRemoving(layer)}>
                  {t('assets.remove')}
                </button>
              </span>
            </Acts>
          </li>
        )}
      </Rows>
      <Acts>
        <Upload onDone={found.refresh} />
      </Acts>
      {printing && <Sheets layer={printing} onClose={() => setPrinting(undefined)} />}
      {removing && (
        <Final
          title={t('assets.remove')}
          points={[`${removing.layer}: ${tn('assets.count', removing.count)}`, t('assets.remove-hint')]}
          act={() => replace(removing.layer, removing.category_id, NOTHING, 'text/csv')}
          onClose={() => {
            setRemoving(undefined);
            found.refresh();
          }}
        />
      )}
    </div>
  );
}

function Upload({ onDone }: { onDone(): void }) {
  const [layer, setLayer] = useState('');
  const [category, setCategory] = useState('');
  const [file, setFile] = useState<File>();
  const { busy, error, submits } = useAct();
  const submit = submits(async () => {
    if (!file) return;
    const type = /\.csv$/i.test(file.name) ? 'text/csv' : 'application/geo+json';
    const { count, added, changed, removed } = await replace(layer, Number(category), file, type);
    const changes = { count: number(count), added: number(added), changed: number(changed), removed: number(removed) };
    toast(t('assets.saved', changes));
    onDone();
  });
  return (
    <form class="panel stack" onSubmit={submit} aria-busy={busy}>
      <Field
        label={t('assets.layer')}
        required
        maxLength={40}
        pattern="[a-z0-9][a-z0-9\-]*"
        autocomplete="off"
        title={t('assets.layer-hint')}
        hint={t('assets.layer-hint')}
        value={layer}
        onValue={setLayer}
      />
      <Choice
        label={t('category')}
        required
        value={category}
        none=""
        options={inUse.value.map(({ id, name }) => [id, name])}
        onValue={setCategory}
      />
      <label class="field">
        <span>{t('assets.file')}</span>
        <input
          type="file"
          required
          accept=".geojson,.json,.csv,application/geo+json,text/csv"
          onChange={({ currentTarget: { files } }) => setFile(files?.[0])}
        />
        <small>{t('assets.file-hint')}</small>
      </label>
      <Faults error={error} told={told} />
      <p class="bar">
        <button class="primary" disabled={busy}>
          {t('assets.replace')}
        </button>
      </p>
    </form>
  );
}

/** A fault in the reader's language, with its record and the code that stands there. */
function told({ detail, code }: NonNullable<Problem['errors']>[number]): string {
  const key = `assets.fault.${code}`;
  const record = /^record (\d+)(?: \("(.*?)"\))?/.exec(detail);
  if (!isWord(key)) return detail;
  const where =
    record && [t('assets.record', { number: number(Number(record[1])) }), record[2] && `“${record[2]}”`].filter(Boolean).join(' ');
  return [where && `${where}:`, t(key)].filter(Boolean).join(' ');
}

/** The sheets of a layer, one at a time: a browser prints what it has opened. */
function Sheets({ layer, onClose }: { layer: string; onClose(): void }) {
  const [sheet, setSheet] = useState(`/reports/assets/${layer}/sheet`);
  const [next, setNext] = useState<string>();
  const { error, run } = useAct();
  useEffect(() => {
    setNext(undefined);
    void run(async () => {
      const { response } = await must(fetch(sheet).then((response) => ({ response, data: { response } })));
      setNext(/<([^>]+)>; *rel="next"/.exec(response.headers.get('Link') ?? '')?.[1]);
    });
  }, [sheet]);
  return (
    <Modal title={t('assets.sheet')} onClose={onClose}>
      <div class="stack">
        <p class="quiet">{t('assets.sheet-hint')}</p>
        <Fault error={error} />
        <img class="code-sheet" src={sheet} alt={t('assets.sheet')} />
        <p class="bar">
          <a class="button primary" href={sheet} target="_blank" rel="noopener">
            {t('assets.print')}
          </a>
          {next && (
            <button type="button" onClick={() => setSheet(next)}>
              {t('assets.next')}
            </button>
          )}
        </p>
      </div>
    </Modal>
  );
}
