import { Failure } from '../../api/client';
import { isWord, language, t } from '../../lang/i18n';
import { draftError } from '../../state/draft';

/** The server's faults of fields of the report, by their JSON pointers. */
export function FieldFault({ pointers }: { pointers: string[] }) {
  const error = draftError.value;
  const faults = error instanceof Failure ? pointers.flatMap((pointer) => say(pointer, error.fault(pointer))) : [];
  return faults.length > 0 ? <small class="fault">{[...new Set(faults)].join(' ')}</small> : null;
}

/** The faults of anything else: no fault may be shown nowhere. */
export function OtherFaults({ known }: { known: string[] }) {
  const error = draftError.value;
  const others = error instanceof Failure ? (error.problem?.errors ?? []).filter(({ pointer }) => !known.includes(pointer)) : [];
  if (others.length === 0) return null;
  return (
    <ul class="fault">
      {others.map(({ pointer, detail }) => (
        <li key={pointer}>
          {pointer}: {detail}
        </li>
      ))}
    </ul>
  );
}

/** The server explains in English; in other languages the page says what the field takes. */
function say(pointer: string, detail: string | undefined): string[] {
  if (!detail) return [];
  const key = `fault.${pointer.slice(1)}`;
  return [language.value !== 'en' && isWord(key) ? t(key) : detail];
}
