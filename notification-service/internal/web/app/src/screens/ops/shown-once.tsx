import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

import { t } from '../../lang/console';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';

interface Props {
  title: string;
  hint: string;
  secret: string;
  /** Why something of it failed. */
  error?: unknown;
  onClose(): void;
  /** Further buttons. */
  children?: ComponentChildren;
}

/** Shows a secret, this once, with a button that copies it. */
export function ShownOnce({ title, hint, secret, error, onClose, children }: Props) {
  const [copied, setCopied] = useState(false);
  const [refused, setRefused] = useState<unknown>();
  return (
    <Modal title={title} onClose={onClose}>
      <div class="stack">
        <p>{hint}</p>
        <label class="field">
          <span>{title}</span>
          <input class="code" readOnly value={secret} onFocus={(event) => event.currentTarget.select()} />
        </label>
        <p role="status" class="quiet">
          {copied && t('webhooks.copied')}
        </p>
        <Fault error={error ?? refused} />
        <p class="bar">
          <button
            type="button"
            class="primary"
            onClick={() => void navigator.clipboard.writeText(secret).then(() => setCopied(true), setRefused)}
          >
            {t('webhooks.copy')}
          </button>
          {children}
        </p>
      </div>
    </Modal>
  );
}
