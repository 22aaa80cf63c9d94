import { useEffect, useState } from 'preact/hooks';

import { Failure, must, reportService, type Firm, type Status, type Task, type Work } from '../../api/client';
import { t } from '../../lang/queue';
import { useAct } from '../../ui/act';
import { Lines } from '../../ui/field';
import { Fault } from '../../ui/problem';
import { lastDay } from '../../ui/time';

/** The words of the firm that has the report, and the status that follows from them, by one key. */
export function FirmSaid({ task, job, onStatus }: { task: Task; job: Work['job']; onStatus(status: Status): Promise<void> }) {
  const { busy, error, run } = useAct();
  if (!job || (job.ended && job.said !== 'done')) return null;
  const resolvable = job.said === 'done' && task.transitions.some(({ status }) => status === 'resolved');
  return (
    <div class="note">
      <p>
        {t(`firm.said.${job.said ?? 'nothing'}`, { firm: job.firm_name, day: lastDay(job.ends_at) })}{' '}
        {job.said_text && `“${job.said_text}”`}
      </p>
      {resolvable && (
        <button
          type="button"
          class="primary firm-done"
          aria-keyshortcuts="r"
          disabled={busy}
          onClick={() => void run(() => onStatus('resolved'))}
        >
          {t('firm.resolve')}
        </button>
      )}
      <Fault error={error} />
    </div>
  );
}

/** The firms of a department, and how to read them again. */
export function useFirms(department: number | undefined) {
  const [firms, setFirms] = useState<Firm[]>([]);
  const params = { query: { department_id: department ?? 0 } };
  useEffect(() => {
    if (!department) return;
    // Without them the report still goes to another department.
    must(reportService.GET('/reports/firms', { params })).then(
      ({ firms }) => setFirms(firms),
      () => {},
    );
  }, [department]);
  const save = async (list: string) =>
    setFirms((await must(reportService.PUT('/reports/firms', { params, body: { firms: parse(list, firms) } }))).firms);
  return { firms, save };
}

/** A firm on each line, by its name and address of mail; a known name or address is the same firm. */
const parse = (list: string, known: Firm[]) =>
  list
    .split('\n')
    .filter((line) => line.trim())
    .map((line) => {
      const at = line.lastIndexOf(',');
      const [name, address] = [line.slice(0, at < 0 ? undefined : at).trim(), at < 0 ? '' : line.slice(at + 1).trim()];
      const id = (known.find((firm) => firm.name === name) ?? known.find((firm) => firm.address === address))?.id;
      return { name, address, ...(id && { id }) };
    });

/** Edits the department's list. */
export function EditFirms({ firms, save }: ReturnType<typeof useFirms>) {
  const [list, setList] = useState<string>();
  const { busy, error, run } = useAct();
  const line = error instanceof Failure && /^\/firms\/(\d+)/.exec(error.problem?.errors?.[0]?.pointer ?? '')?.[1];
  return (
    <details class="firms">
      <summary>{t('firm.edit')}</summary>
      <div class="stack">
        <Lines
          label={t('firm.list')}
          hint={t('firm.list.hint')}
          rows={5}
          value={list ?? firms.map(({ name, address }) => `${name}, ${address}`).join('\n')}
          onValue={setList}
        />
        {line ? (
          <p class="fault" role="alert">
            {t('firm.list.fault', { n: String(Number(line) + 1) })}
          </p>
        ) : (
          <Fault error={error} />
        )}
        <button
          type="button"
          disabled={busy || list === undefined}
          onClick={() => void run(() => save(list!).then(() => setList(undefined)))}
        >
          {t('firm.save')}
        </button>
      </div>
    </details>
  );
}
