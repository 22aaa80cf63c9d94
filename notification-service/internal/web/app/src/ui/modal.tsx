import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';

import { t } from '../lang/i18n';
import { Icon } from './icons';

interface Props {
  title: string;
  onClose(): void;
  /** A drawer comes in from the side, and on a phone fills the screen. */
  drawer?: boolean;
  children: ComponentChildren;
}

/** The browser's own dialog: it keeps the focus inside, and Escape closes it. */
export function Modal({ title, onClose, drawer, children }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Before anything is drawn: who clicks at once hits the dialog, and not what will be behind it.
  useLayoutEffect(() => {
    const opener = document.activeElement;
    ref.current?.showModal();
    // Where one writes, or else at the beginning; the browser would take the button that closes.
    (ref.current?.querySelector<HTMLElement>('[data-first]') ?? ref.current?.querySelector('h2'))?.focus();
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      class={drawer ? 'drawer' : 'modal'}
      aria-labelledby={id}
      onClose={onClose}
      onClick={(event) => event.target === ref.current && onClose()}
    >
      <div class="dialog-body">
        <div class="dialog-head">
          <h2 id={id} tabIndex={-1}>
            {title}
          </h2>
          <button type="button" class="plain" aria-label={t('close')} onClick={onClose}>
            <Icon name="close" />
          </button>
        </div>
        {children}
      </div>
    </dialog>
  );
}
