import { useState } from 'preact/hooks';

import { must, notificationService, type DeadLetterSelection } from '../../api/client';
import { number, t, tn } from '../../lang/console';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { go } from '../../ui/router';

interface Props {
  selection: DeadLetterSelection;
  count: number;
  onClose(): void;
}

/** This many are replayed first; the rest only if they succeed. */
const CANARY = 5;
const RATE = 50;

/** Starts the replay of many: how fast, and how many as a canary. */
export function ReplayForm({ selection, count, onClose }: Props) {
  const [canary, setCanary] = useState(Math.min(CANARY, count));
  const [rate, setRate] = useState(RATE);
  const [limit, setLimit] = useState(0);
  const [dryRunCount, setDryRunCount] = useState<number>();
  const [error, setError] = useState<unknown>();

  const start = async (dryRun: boolean) => {
    try {
      const body = { selection, canary, rate_per_s: rate, limit, dry_run: dryRun };
      const answer = await must(notificationService.POST('/admin/dlq/replays', { body }));
      setError(undefined);
      if ('would_send' in answer) setDryRunCount(answer.would_send);
      else {
        onClose();
        go('ops/replays');
      }
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <Modal title={tn('replay.title', count)} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void start(false);
        }}
      >
        <p class="quiet">{t('replay.hint')}</p>
        <NumberField label={t('replay.canary')} hint={t('replay.canary-hint')} max={1000} value={canary} onChange={setCanary} />
        <NumberField label={t('replay.rate')} hint={t('replay.rate-hint')} max={10000} value={rate} onChange={setRate} />
        <NumberField label={t('replay.limit')} hint={t('replay.limit-hint')} max={1000000} value={limit} onChange={setLimit} />
        {dryRunCount !== undefined && (
          <p class="note" role="status">
            {t('replay.would', { count: number(dryRunCount) })}
          </p>
        )}
        <Fault error={error} />
        <div class="bar">
          <button class="primary">{t('replay')}</button>
          <button type="button" onClick={() => start(true)}>
            {t('replay.dry-run')}
          </button>
        </div>
      </form>
    </Modal>
  );
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
    <label class="field">
      <span>{label}</span>
      <input type="number" required min={0} max={max} value={value} onInput={(e) => onChange(e.currentTarget.valueAsNumber)} />
      <small>{hint}</small>
    </label>
  );
}
