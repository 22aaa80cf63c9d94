import { useState } from 'preact/hooks';

import { Failure, must, notificationService, type Webhook } from '../../../api/client';
import { isWord, language, t } from '../../../lang/console';
import { categories } from '../../../state/categories';
import { useAct } from '../../../ui/act';
import { Choice, Field } from '../../../ui/field';
import { Modal } from '../../../ui/modal';
import { Fault } from '../../../ui/problem';
import { EVENT_TYPES, TEST_TYPE } from './names';
import { Secret } from './secret';

/** Registers an endpoint, or changes one. A new one shows its secret, and can be tried out. */
export function EndpointForm({ webhook, onClose }: { webhook?: Webhook; onClose(): void }) {
  const [url, setURL] = useState(webhook?.url ?? '');
  const [description, setDescription] = useState(webhook?.description ?? '');
  const [types, setTypes] = useState<readonly string[]>(webhook?.event_types ?? []);
  const [chosen, setChosen] = useState<readonly number[]>(webhook?.category_ids ?? []);
  const [area, setArea] = useState(webhook?.area.join(', ') ?? '');
  const [order, setOrder] = useState<Webhook['order']>(webhook?.order ?? 'report');
  const [inFlight, setInFlight] = useState(webhook?.in_flight ?? 2);
  const [created, setCreated] = useState<{ webhook: Webhook; secret: string }>();
  const [scoped, setScoped] = useState(false);
  const { error, submits } = useAct();

  const submit = submits(async () => {
    const body = {
      url: url.trim(),
      description: description.trim(),
      event_types: [...types],
      category_ids: [...chosen],
      area: numbers(area),
      order,
      in_flight: inFlight,
    };
    if (webhook) {
      const params = { path: { id: webhook.id }, header: { 'If-Match': `"${webhook.version}"` } };
      await must(notificationService.PATCH('/admin/webhooks/{id}', { params, body }));
      onClose();
    } else setCreated(await must(notificationService.POST('/admin/webhooks', { body: { ...body, scopes: scoped ? ['private'] : [] } })));
  });
  if (created) return <Secret webhook={created.webhook} secret={created.secret} onClose={onClose} />;
  return (
    <Modal title={t(webhook ? 'webhooks.change' : 'webhooks.add')} onClose={onClose}>
      <form class="stack" onSubmit={submit}>
        <Field label={t('webhooks.url')} type="url" required maxLength={2048} hint={t('webhooks.url-hint')} value={url} onValue={setURL}>
          <FieldFault error={error} pointer="/url" />
        </Field>
        <Field label={t('webhooks.description')} maxLength={200} value={description} onValue={setDescription}>
          <FieldFault error={error} pointer="/description" />
        </Field>
        <fieldset class="choices">
          <legend>{t('webhooks.events')}</legend>
          {EVENT_TYPES.filter((type) => type !== TEST_TYPE).map((type) => (
            <Chip key={type} name={type} checked={types.includes(type)} onChange={(on) => setTypes(toggled(types, type, on))} />
          ))}
          <small class="quiet">{t('webhooks.events-hint')}</small>
        </fieldset>
        <details>
          <summary>{t('webhooks.more')}</summary>
          <div class="stack">
            <fieldset class="choices">
              <legend>{t('category')}</legend>
              {categories.value
                .filter(({ id, retired }) => !retired || chosen.includes(id))
                .map(({ id, name }) => (
                  <Chip key={id} name={name} checked={chosen.includes(id)} onChange={(on) => setChosen(toggled(chosen, id, on))} />
                ))}
              <small class="quiet">{t('webhooks.categories-hint')}</small>
            </fieldset>
            <Field label={t('webhooks.area')} inputMode="text" pattern={AREA} hint={t('webhooks.area-hint')} value={area} onValue={setArea}>
              <FieldFault error={error} pointer="/area" />
            </Field>
            {!webhook && (
              <label class="option">
                <input type="checkbox" checked={scoped} onChange={() => setScoped(!scoped)} />
                <span>
                  <strong>{t('webhooks.private')}</strong>
                  <small>{t('webhooks.private-hint')}</small>
                </span>
              </label>
            )}
            <Choice
              label={t('webhooks.order')}
              value={order}
              options={(['report', 'none'] as const).map((each) => [each, t(`webhooks.order.${each}`)])}
              onValue={(each) => setOrder(each as Webhook['order'])}
            />
            <Field
              label={t('webhooks.in-flight')}
              type="number"
              required
              min={1}
              max={16}
              value={inFlight}
              onValue={(most) => setInFlight(Number(most))}
            />
          </div>
        </details>
        <Fault error={error} />
        <button class="primary">{t(webhook ? 'webhooks.save' : 'webhooks.register')}</button>
      </form>
    </Modal>
  );
}

/** Four numbers joined by commas, or nothing. */
const AREA = String.raw`(\s*-?\d+(\.\d+)?\s*,){3}\s*-?\d+(\.\d+)?\s*`;

function numbers(text: string): number[] {
  return text.trim() === '' ? [] : text.split(',').map(Number);
}

function toggled<T>(all: readonly T[], one: T, on: boolean): T[] {
  return on ? [...all, one] : all.filter((each) => each !== one);
}

function Chip({ name, checked, onChange }: { name: string; checked: boolean; onChange(on: boolean): void }) {
  return (
    <label class="chip">
      <input type="checkbox" checked={checked} onChange={(e) => onChange(e.currentTarget.checked)} />
      <span>{name}</span>
    </label>
  );
}

function FieldFault({ error, pointer }: { error: unknown; pointer: string }) {
  const said = error instanceof Failure ? error.fault(pointer) : undefined;
  // The server explains in English.
  const key = `fault.webhook${pointer}`;
  const fault = said && language.value !== 'en' && isWord(key) ? t(key) : said;
  return fault ? <small class="fault">{fault}</small> : null;
}
