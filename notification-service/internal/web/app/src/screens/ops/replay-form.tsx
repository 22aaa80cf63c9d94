import { useState } from 'preact/hooks';

import { must, notificationService, type DeadLetterSelection } from '../../api/client';
import { number, t, tn } from '../../lang/i18n';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { go } from '../../ui/router';

interface Props {
  selection: DeadLetterSelection;
  count: number;
  onClose(): void;
}

/** A few go first: what they show decides about the rest. */
const CANARY = 5;
const RATE = 50;

/** Orders the replay of many: how fast, and with how many to try it first. */
export function ReplayForm({ selection, count, onClose }: Props) {
  const [canary, setCanary] = useState(Math.min(CANARY, count));
  const [rate, setRate] = useState(RATE);
  const [limit, setLimit] = useState(0);
  const [rehearsed, setRehearsed] = useState<number>();
  const [error, setError] = useState<unknown>();

  const order = async (dryRun: boolean) => {
    try {
      const body = { selection, canary, rate_per_s: rate, limit, dry_run: dryRun };
      const answer = await must(notificationService.POST('/admin/dlq/replays', { body }));
      setError(undefined);
      if ('would_send' in answer) setRehearsed(answer.would_send);
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
          void order(false);
        }}
      >
        <p class="quiet">{t('replay.hint')}</p>
        <Amount label={t('replay.canary')} hint={t('replay.canary-hint')} max={1000} value={canary} onChange={setCanary} />
        <Amount label={t('replay.rate')} hint={t('replay.rate-hint')} max={10000} value={rate} onChange={setRate} />
        <Amount label={t('replay.limit')} hint={t('replay.limit-hint')} max={1000000} value={limit} onChange={setLimit} />
        {rehearsed !== undefined && (
          <p class="note" role="status">
            {t('replay.would', { count: number(rehearsed) })}
          </p>
        )}
        <Fault error={error} />
        <div class="bar">
          <button class="primary">{t('replay')}</button>
          <button type="button" onClick={() => order(true)}>
            {t('replay.dry-run')}
          </button>
        </div>
      </form>
    </Modal>
  );
}

interface AmountProps {
  label: string;
  hint: string;
  max: number;
  value: number;
  onChange(value: number): void;
}

function Amount({ label, hint, max, value, onChange }: AmountProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <input type="number" required min={0} max={max} value={value} onInput={(e) => onChange(e.currentTarget.valueAsNumber)} />
      <small>{hint}</small>
    </label>
  );
}
