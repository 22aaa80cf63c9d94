import { t } from '../lang/i18n';
import { connection } from '../live/live';
import { showExactTime, timeOfDay } from '../ui/time';

/** Whether what is shown is current. */
export function ConnectionState() {
  const { state, since } = connection.value;
  return (
    <span class="connection" data-state={state} onPointerEnter={showExactTime(since)} role="status">
      {state === 'live' || state === 'connecting' ? t(`connection.${state}`) : t(`connection.${state}`, { time: timeOfDay(since) })}
    </span>
  );
}
