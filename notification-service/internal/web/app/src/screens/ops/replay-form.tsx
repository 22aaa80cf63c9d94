import { useState } from 'preact/hooks';

import { must, notificationService, type DeadLetter, type DeadLetterSelection } from '../../api/client';
import { number, t, tn } from '../../lang/console';
import { useAct } from '../../ui/act';
import { cause, helpsReplay } from '../../ui/cause';
import { Field } from '../../ui/field';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { go } from '../../ui/router';
import { Time } from '../../ui/time';

interface Props {
  selection: DeadLetterSelection;
  count: number;
  /** Those that were chosen one by one, whom the selection names by number. */
  chosen?: DeadLetter[];
  onClose(): void;
}

/** This many are replayed first; the rest only if they succeed. */
const CANARY = 5;
const RATE = 50;
/** So many are listed after a dry run. */
const LISTED = 20;

/** Starts the replay of many: how fast, and how many as a canary. */
export function ReplayForm({ selection, count, chosen, onClose }: Props) {
  const [canary, setCanary] = useState(Math.min(CANARY, count));
  const [rate, setRate] = useState(RATE);
  const [limit, setLimit] = useState(0);
  const [dryRun, setDryRun] = useState<{ count: number; letters: DeadLetter[] }>();
  const { error, run, submits } = useAct();

  const start = (dry: boolean) => async () => {
    const body = { selection, canary, rate_per_s: rate, limit, dry_run: dry };
    const answer = await must(notificationService.POST('/admin/dlq/replays', { body }));
    if ('would_send' in answer) setDryRun({ count: answer.would_send, letters: await firstOf(selection, chosen, answer.would_send) });
    else {
      onClose();
      go('ops/replays');
    }
  };
  return (
    <Modal title={tn('replay.title', count)} onClose={onClose}>
      <form class="stack" onSubmit={submits(start(false))}>
        <p class="quiet">{t('replay.hint')}</p>
        {!helpsReplay(selection.error_class) && <p class="note">{t('replay.permanent')}</p>}
        {dryRun && (
          <div class="note stack">
            <p role="status">{t('replay.would', { count: number(dryRun.count) })}</p>
            <ul class="would">
              {dryRun.letters.map((letter) => (
                <li key={letter.id}>
                  #{letter.id} <code>{letter.message_id}</code> {cause(letter.error)} <Time at={letter.failed_at} full />
                </li>
              ))}
              {dryRun.count > dryRun.letters.length && (
                <li class="quiet">{t('replay.would-more', { count: number(dryRun.count - dryRun.letters.length) })}</li>
              )}
            </ul>
          </div>
        )}
        <NumberField label={t('replay.canary')} hint={t('replay.canary-hint')} max={1000} value={canary} onChange={setCanary} />
        <NumberField label={t('replay.rate')} hint={t('replay.rate-hint')} max={10000} value={rate} onChange={setRate} />
        <NumberField label={t('replay.limit')} hint={t('replay.limit-hint')} max={1000000} value={limit} onChange={setLimit} />
        <Fault error={error} />
        <div class="bar">
          <button class={helpsReplay(selection.error_class) ? 'primary' : undefined}>{t('replay')}</button>
          <button type="button" onClick={() => void run(start(true))}>
            {t('replay.dry-run')}
          </button>
        </div>
      </form>
    </Modal>
  );
}

/** The first of those that would be sent. */
async function firstOf(selection: DeadLetterSelection, chosen: DeadLetter[] | undefined, count: number): Promise<DeadLetter[]> {
  if (chosen) return chosen.slice(0, Math.min(LISTED, count));
  const { queue, error_class, error_group, type, message_id, replay_id } = selection;
  const filters = { ...(queue && { queue }), ...(error_class && { error_class }), ...(error_group && { error_group }) };
  const ids = { ...(type && { type }), ...(message_id && { message_id }), ...(replay_id && { replay_id }) };
  const query = { ...filters, ...ids, state: 'open' as const, limit: LISTED };
  return (await must(notificationService.GET('/admin/dlq/messages', { params: { query } }))).items;
}

interface NumberFieldProps {
  label: string;
  hint: string;
  max: number;
  value: number;
  onChange(value: number): void;
}

function NumberField({ label, hint, max, value, onChange }: NumberFieldProps) {
  return (
    <Field label={label} hint={hint} type="number" required min={0} max={max} value={value} onValue={(typed) => onChange(Number(typed))} />
  );
}
