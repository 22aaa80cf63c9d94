import { t } from '../lang/i18n';
import { dismiss, toasts } from '../state/toasts';
import { Icon } from '../ui/icons';

/** The region always exists: what is added to it later is read out. */
export function Toasts() {
  return (
    <div class="toasts" aria-live="polite" role="log" aria-label={t('toasts')}>
      {toasts.value.map(({ id, text, href }) => (
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
      ))}
    </div>
  );
}
