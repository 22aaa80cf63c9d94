import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import { t } from '../lang/i18n';
import { dismiss, toasts } from '../state/toasts';
import { Icon } from '../ui/icons';
import { route } from '../ui/router';

/**
 * The region always exists: what is added to it later is read out. Nothing is covered that
 * a toast speaks of: the report that is open shows it itself, and what has the focus stays in sight.
 */
export function Toasts() {
  const region = useRef<HTMLDivElement>(null);
  const [above, setAbove] = useState(false);
  const shown = toasts.value;
  useLayoutEffect(() => {
    const focused = document.activeElement;
    if (shown.length > 0 && focused?.closest('main > *')) {
      const [toast, field] = [region.current!.getBoundingClientRect(), focused.getBoundingClientRect()];
      if (field.bottom > toast.top && field.right > toast.left) setAbove(true);
    }
    if (shown.length === 0) setAbove(false);
  }, [shown]);
  return (
    <div class="toasts" ref={region} data-above={above} aria-live="polite" role="log" aria-label={t('toasts')}>
      {shown.map(({ id, text, href }) =>
        href === `/${route.value.path.join('/')}` ? (
          <p key={id} class="hidden">
            {text}
          </p>
        ) : (
          <p key={id} class="toast">
            {href ? (
              <a href={href} onClick={() => dismiss(id)}>
                {text}
              </a>
            ) : (
              <span>{text}</span>
            )}
            <button type="button" class="plain" aria-label={t('dismiss')} onClick={() => dismiss(id)}>
              <Icon name="close" />
            </button>
          </p>
        ),
      )}
    </div>
  );
}
