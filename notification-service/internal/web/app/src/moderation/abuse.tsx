import { useState } from 'preact/hooks';

import { must, reportService, type AbuseReason } from '../api/client';
import { t } from '../lang/report';
import { toast } from '../state/toasts';
import { useAct } from '../ui/act';
import { Lines } from '../ui/field';
import { Fault } from '../ui/problem';

export const ABUSE_REASONS: readonly AbuseReason[] = ['personal_data', 'offensive', 'spam', 'other'];

/** Asks why a report should not be shown, with or without an account. The notice is anonymous. */
export function AbuseForm({ id, onClose }: { id: string; onClose(): void }) {
  const [reason, setReason] = useState<AbuseReason>();
  const [text, setText] = useState('');
  const { busy, error, submits } = useAct();
  const submit = submits(async () => {
    if (!reason) return;
    const body = { reason, ...(text.trim() && { text: text.trim() }) };
    await must(reportService.POST('/reports/{id}/abuse', { params: { path: { id } }, body }));
    toast(t('abuse.sent'));
    onClose();
  });
  return (
    <form class="stack" onSubmit={submit} aria-busy={busy}>
      <p class="quiet">{t('abuse.hint')}</p>
      <fieldset class="choices">
        <legend>{t('abuse.why')}</legend>
        {ABUSE_REASONS.map((each) => (
          <label key={each} class="chip">
            <input type="radio" name="abuse" required checked={reason === each} onChange={() => setReason(each)} />
            <span>{t(`abuse.reason.${each}`)}</span>
          </label>
        ))}
      </fieldset>
      <Lines label={t('abuse.text')} rows={3} maxLength={500} value={text} onValue={setText} />
      <Fault error={error} />
      <button class="primary">{t('abuse.send')}</button>
    </form>
  );
}
