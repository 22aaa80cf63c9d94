import { t } from '../../lang/i18n';
import { PickMap, usePicking } from '../../map/picking';
import { config } from '../../state/config';
import { draft, ofAsset, updateDraft, type Draft } from '../../state/draft';
import { Field } from '../../ui/field';
import { lazily } from '../../ui/lazily';
import { Modal } from '../../ui/modal';
import { FieldFault } from './field-fault';

const About = lazily(async () => (await import('../../map/about')).About, true);
const Camera = lazily(async () => (await import('./camera')).Camera, true);

interface Props {
  /** Whether to ask what to do about a report that has no place yet. */
  asking: boolean;
  /** The answer; with `goOn` the next step follows. */
  onAnswer(goOn: boolean): void;
}

/** Whether the report says where the problem is, on the map or in words. */
export const hasPlace = () => draft.value.position !== undefined || draft.value.address.trim() !== '';

/**
 * The place of the problem: under the pin in the map's middle once the reader has
 * moved the map, by keyboard, by the device or in words.
 */
export function Place({ asking, onAnswer }: Props) {
  const { position, address, asset } = draft.value;
  const picking = usePicking({
    address,
    onAddress: (address) => updateDraft({ address }),
    // Another place is not the thing's.
    onPosition: (position) => (draft.value = { ...withoutAsset(), position }),
  });
  const { plot, mapless, problem } = picking;
  const without = mapless ? '.mapless' : '';
  return (
    <>
      {config.photos && (
        <Camera
          onPlace={(position) => {
            plot.current?.moveTo(position);
            picking.pick(position);
          }}
        />
      )}
      <PickMap picking={picking} chosen={position !== undefined} start={position} onAsset={(asset) => updateDraft(ofAsset(asset))}>
        <div class="bar read-back">
          <p class={problem ? 'fault' : position ? '' : 'quiet'} role="status">
            {problem
              ? t(`place.${problem}${without}`)
              : position
                ? `✓ ${address || t(mapless ? 'place.located' : 'place.pinned')}`
                : t(`place.hint${without}`)}
          </p>
          {position && (
            <button type="button" class="link" onClick={forget}>
              {t('place.forget')}
            </button>
          )}
        </div>
        {asset && <About label={asset.label} onForget={() => (draft.value = withoutAsset())} />}
      </PickMap>
      <FieldFault pointers={['/latitude', '/longitude', '/asset']} />
      <Field
        label={t('place.address')}
        maxLength={300}
        autocomplete="street-address"
        value={address}
        onValue={(address) => updateDraft({ address })}
      >
        <FieldFault pointers={['/address']} />
      </Field>
      {asking && (
        <Modal title={t('place.ask')} onClose={() => onAnswer(false)}>
          <p>{t('place.ask.hint')}</p>
          <div class="bar">
            {plot.current && (
              <button
                type="button"
                class="primary"
                data-first
                onClick={() => {
                  if (plot.current) picking.pick(plot.current.center());
                  onAnswer(hasPlace());
                }}
              >
                {t('place.ask.pin')}
              </button>
            )}
            <button type="button" onClick={() => onAnswer(true)}>
              {t('place.ask.without')}
            </button>
          </div>
        </Modal>
      )}
    </>
  );
}

function withoutAsset(): Draft {
  const { asset: _, ...rest } = draft.value;
  return rest;
}

function forget(): void {
  const { position: _, ...rest } = withoutAsset();
  draft.value = rest;
}
