import { useState } from 'preact/hooks';

import { t } from '../lang/console';

/** An id, with a button that copies it; without one where the browser lets no page copy. */
export function Copy({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <span class="copy">
      <code>{text}</code>
      {'clipboard' in navigator && (
        <button
          type="button"
          class="link"
          aria-label={t('copy.of', { text })}
          onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
          onBlur={() => setCopied(false)}
        >
          {copied ? t('copy.done') : t('copy')}
        </button>
      )}
    </span>
  );
}
