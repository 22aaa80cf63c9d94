import { t } from '../lang/i18n';
import { connection } from '../live/live';
import { exactly } from '../ui/time';
import { language } from '../lang/i18n';

/** Says honestly whether what is shown is current. */
export function ConnectionState() {
  const { state, since } = connection.value;
  const time = since.toLocaleTimeString(language.value, { hour: '2-digit', minute: '2-digit' });
  return (
    <span class="connection" data-state={state} title={exactly(since)} role="status">
      {state === 'live' ? t('connection.live') : t(`connection.${state}`, { time })}
    </span>
  );
}
