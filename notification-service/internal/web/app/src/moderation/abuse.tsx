import { useState } from 'preact/hooks';

import { must, reportService, type AbuseReason } from '../api/client';
import { t } from '../lang/report';
import { toast } from '../state/toasts';
import { Fault } from '../ui/problem';

export const ABUSE_REASONS: readonly AbuseReason[] = ['personal_data', 'offensive', 'spam', 'other'];

/** Asks why a report should not be shown, with or without an account. The notice is anonymous. */
export function AbuseForm({ id, onClose }: { id: string; onClose(): void }) {
  const [reason, setReason] = useState<AbuseReason>();
  const [text, setText] = useState('');
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!reason || busy) return;
    setBusy(true);
    try {
      const body = { reason, ...(text.trim() && { text: text.trim() }) };
      await must(reportService.POST('/reports/{id}/abuse', { params: { path: { id } }, body }));
      toast(t('abuse.sent'));
      onClose();
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
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
      <label class="field">
        <span>{t('abuse.text')}</span>
        <textarea rows={3} maxLength={500} value={text} onInput={(e) => setText(e.currentTarget.value)} />
      </label>
      <Fault error={error} />
      <button class="primary">{t('abuse.send')}</button>
    </form>
  );
}
