import { useState } from 'preact/hooks';

import { Failure, must, notificationService, type DeadLetter, type DeadLetterEdited } from '../../api/client';
import { t } from '../../lang/console';
import { useAct } from '../../ui/act';
import { cause } from '../../ui/cause';
import { Modal } from '../../ui/modal';
import { Fault } from '../../ui/problem';
import { go } from '../../ui/router';
import { fieldsOf, missingOf, type Field } from './contract';

type Body = Record<string, never>;

/**
 * Edits a message: first what would change is shown, then it is changed. The fields
 * that it must have stand beside it, and it is not sent while one is missing.
 */
export function EditForm({ letter, onClose }: { letter: DeadLetter; onClose(): void }) {
  const [text, setText] = useState(typeof letter.body === 'string' ? letter.body : JSON.stringify(letter.body, null, 2));
  const [changes, setChanges] = useState<DeadLetterEdited['changes']>();
  const { error, submits } = useAct();
  const [broken, setBroken] = useState(false);
  const fields = fieldsOf(letter.type);
  const body = parse(text);
  const missing = body ? missingOf(fields, body) : [];

  const submit = submits(async () => {
    setBroken(body === undefined);
    if (body === undefined || missing.length > 0) return;
    const dryRun = changes === undefined;
    const params = { path: { id: letter.id } };
    const edited = await must(notificationService.POST('/admin/dlq/messages/{id}/edit', { params, body: { body, dry_run: dryRun } }));
    setChanges(edited.changes);
    if (dryRun) return;
    onClose();
    if (edited.id) go(`ops/dead-letters/${edited.id}`);
  });
  const wrong = error instanceof Failure ? error.faults('/body') : [];
  return (
    <Modal title={t('edit')} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <p class="quiet">{t('edit.hint')}</p>
        <label class="field">
          <span>{t('dead.body')}</span>
          <textarea
            class="code"
            rows={12}
            spellcheck={false}
            value={text}
            aria-invalid={missing.length > 0}
            aria-describedby={missing.length > 0 ? 'edit-missing' : undefined}
            onInput={(event) => {
              setText(event.currentTarget.value);
              setChanges(undefined);
            }}
          />
        </label>
        {missing.length > 0 && (
          <p id="edit-missing" class="fault" role="alert">
            {t('edit.missing', { fields: missing.map(({ name }) => name).join(', ') })}
          </p>
        )}
        <Required fields={fields} missing={missing} />
        {broken && (
          <p class="fault" role="alert">
            {t('edit.broken')}
          </p>
        )}
        <Fault error={error} />
        {wrong.map((each) => (
          <p key={each} class="fault">
            {cause(each)}
          </p>
        ))}
        {changes && <Diff changes={changes} />}
        <button class="primary" disabled={changes?.length === 0 || missing.length > 0}>
          {t(changes ? 'edit.save' : 'edit.check')}
        </button>
      </form>
    </Modal>
  );
}

/** The fields that a message of this type must have, by the contract. */
function Required({ fields, missing }: { fields: Field[]; missing: Field[] }) {
  if (fields.length === 0) return null;
  return (
    <details class="quiet" open={missing.length > 0}>
      <summary>{t('edit.required')}</summary>
      <dl class="states" data-required>
        {fields.map((field) => (
          <div key={field.name}>
            <dt>{field.name}</dt>
            <dd data-warn={missing.includes(field)}>
              {field.kind === 'choice' ? field.choices.join(' · ') : t(`edit.kind.${field.kind}`)}
              {missing.includes(field) && ` – ${t('edit.is-missing')}`}
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

function parse(text: string): Body | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Body) : undefined;
  } catch {
    return undefined;
  }
}

/** A value as JSON; a field that is not there is a dash. */
function shown(value: unknown): string {
  return value === undefined ? '–' : JSON.stringify(value);
}

function Diff({ changes }: { changes: DeadLetterEdited['changes'] }) {
  if (changes.length === 0) return <p class="note">{t('edit.nothing')}</p>;
  return (
    <dl class="diff" aria-label={t('edit.changes')}>
      {changes.map(({ field, before, after }) => (
        <div key={field}>
          <dt>{field}</dt>
          <dd>
            <del>{shown(before)}</del> <ins>{shown(after)}</ins>
          </dd>
        </div>
      ))}
    </dl>
  );
}
