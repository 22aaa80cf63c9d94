import { t } from '../../lang/report';
import { config } from '../../state/config';
import { FinalForm } from '../../ui/final-form';

/** Asks the reporter whether to hide their name. */
export function HideNameForm({ hide, onClose }: { hide(): Promise<void>; onClose(): void }) {
  const points = [
    t('hide-name.does'),
    ...(config.comments ? [t('hide-name.comments')] : []),
    t('hide-name.mails'),
    t('hide-name.cannot'),
    t('hide-name.forever'),
  ];
  return <FinalForm points={points} button={t('hide-name')} kind="primary" done={t('hide-name.done')} act={hide} onClose={onClose} />;
}
