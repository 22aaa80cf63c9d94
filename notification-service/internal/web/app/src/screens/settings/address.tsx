import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

import { Failure, must, notificationService, type Contact } from '../../api/client';
import { languages, language, t } from '../../lang/settings';
import { isMailed } from '../../state/notify';
import { toast } from '../../state/toasts';
import { useAct } from '../../ui/act';
import { Choice, Field } from '../../ui/field';
import { Final } from '../../ui/final-form';
import { Fault } from '../../ui/problem';

interface Props {
  contact: Contact | null;
  onChange(contact: Contact | null): void;
}

/**
 * Where the reader is written to. An address is proven by a code that is typed
 * here, while signed in, as no program that scans mails on the way can do.
 */
export function Address({ contact, onChange }: Props) {
  const [replacing, setReplacing] = useState(false);
  const [sent, setSent] = useState(false);
  const { error, setError, run: attempt } = useAct();
  const requestCode = async () => {
    setSent(false);
    await must(notificationService.POST('/me/contact/code'));
    setSent(true);
  };
  const save = (address: string) =>
    attempt(async () => {
      const kept = await put(address, language.value, ownZone());
      setReplacing(false);
      onChange(kept);
      if (kept.state !== 'active') await requestCode();
    });

  if (!contact || replacing) {
    return (
      <Panel>
        <AddressForm
          initial={contact?.address ?? ''}
          error={error}
          onSave={save}
          {...(contact && { onCancel: () => setReplacing(false) })}
        />
      </Panel>
    );
  }
  return (
    <Panel>
      <p>
        <strong class="wrap">{contact.address}</strong>
        <br />
        <span class="quiet">{t(`settings.state.${contact.state}`)}</span>
      </p>
      {contact.state !== 'active' && (
        <Code
          sent={sent}
          onSend={() => attempt(requestCode)}
          onProven={(proven) => {
            setSent(false);
            setError(undefined);
            onChange(proven);
            toast(t(isMailed(proven) ? 'settings.proven-on' : 'settings.proven'));
          }}
        />
      )}
      {error instanceof Failure && error.kind === 'too-many-requests' ? (
        <p class="fault" role="alert">
          {t('settings.code.too-many')}
        </p>
      ) : (
        <Fault error={error} />
      )}
      {contact.state === 'active' && <HowWritten contact={contact} onChange={onChange} />}
      <div class="bar">
        <button
          type="button"
          onClick={() => {
            setError(undefined);
            setReplacing(true);
          }}
        >
          {t('settings.replace')}
        </button>
        <Remove onRemoved={() => onChange(null)} />
      </div>
    </Panel>
  );
}

function Panel({ children }: { children: ComponentChildren }) {
  return (
    <section class="panel stack" aria-labelledby="address">
      <h2 id="address">{t('settings.address')}</h2>
      {children}
    </section>
  );
}

interface FormProps {
  initial: string;
  error: unknown;
  onSave(address: string): Promise<void>;
  onCancel?(): void;
}

function AddressForm({ initial, error, onSave, onCancel }: FormProps) {
  const [address, setAddress] = useState(initial);
  const refused = error instanceof Failure && error.fault('/address');
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void onSave(address);
      }}
    >
      <Field
        label={t('settings.address.yours')}
        type="email"
        required
        maxLength={254}
        autocomplete="email"
        hint={t('settings.address.hint')}
        value={address}
        onValue={(typed) => setAddress(typed.replace(/\p{Cf}/gu, ''))}
      >
        {refused && (
          <small class="fault" role="alert">
            {t('settings.address.refused')}
          </small>
        )}
      </Field>
      {!refused && <Fault error={error} />}
      <div class="bar">
        <button class="primary">{t('settings.send-code')}</button>
        {onCancel && (
          <button type="button" class="link" onClick={onCancel}>
            {t('settings.cancel')}
          </button>
        )}
      </div>
    </form>
  );
}

interface CodeProps {
  sent: boolean;
  onSend(): Promise<void>;
  onProven(contact: Contact): void;
}

function Code({ sent, onSend, onProven }: CodeProps) {
  const [code, setCode] = useState('');
  const { error, submits } = useAct();
  const submit = submits(async () => onProven(await must(notificationService.POST('/me/contact/verify', { body: { code } }))));
  const wrong = error instanceof Failure && error.fault('/code');
  return (
    <form class="stack" onSubmit={submit}>
      {sent && (
        <p class="note" role="status">
          {t('settings.code-sent')}
        </p>
      )}
      <Field
        label={t('settings.code')}
        required
        inputMode="numeric"
        autocomplete="one-time-code"
        pattern="\D*([0-9]\D*){6}"
        maxLength={40}
        title={t('settings.code.hint')}
        hint={t('settings.code.hint')}
        value={code}
        onValue={setCode}
      >
        {wrong && (
          <small class="fault" role="alert">
            {t('settings.code.wrong')}
          </small>
        )}
      </Field>
      {!wrong && <Fault error={error} />}
      <div class="bar">
        <button class="primary">{t('settings.prove')}</button>
        <button type="button" onClick={onSend}>
          {t('settings.send-again')}
        </button>
      </div>
    </form>
  );
}

/** In which language, and by which clock. */
function HowWritten({ contact, onChange }: { contact: Contact; onChange(contact: Contact): void }) {
  const { error, run } = useAct();
  const change = (language: string, zone: string) => run(async () => onChange(await put(contact.address, language, zone)));
  const zone = ownZone();
  return (
    <>
      <Choice
        label={t('settings.language')}
        value={contact.language}
        options={Object.entries(languages())}
        onValue={(tag) => change(tag, contact.zone)}
      />
      <p class="meta">
        <span>{t('settings.zone', { zone: contact.zone })}</span>
        {zone !== contact.zone && (
          <button type="button" class="link" onClick={() => change(contact.language, zone)}>
            {t('settings.zone.take', { zone })}
          </button>
        )}
      </p>
      <Fault error={error} />
    </>
  );
}

function Remove({ onRemoved }: { onRemoved(): void }) {
  const [asked, setAsked] = useState(false);
  return (
    <>
      <button type="button" class="danger-quiet" aria-haspopup="dialog" onClick={() => setAsked(true)}>
        {t('settings.remove')}
      </button>
      {asked && (
        <Final
          title={t('settings.remove')}
          points={[t('settings.remove.hint')]}
          act={() => must(notificationService.DELETE('/me/contact')).then(onRemoved)}
          onClose={() => setAsked(false)}
        />
      )}
    </>
  );
}

function put(address: string, language: string, zone: string): Promise<Contact> {
  return must(notificationService.PUT('/me/contact', { body: { address: address.trim(), language, zone } }));
}

/** The reader's time zone, as the browser knows it. */
function ownZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
