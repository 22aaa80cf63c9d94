import { t } from '../../lang/report';
import { FinalForm } from './final-form';

/** Asks the reporter whether to withdraw the report. */
export function WithdrawForm({ withdraw, onClose }: { withdraw(): Promise<void>; onClose(): void }) {
  const points = [t('withdraw.hides'), t('withdraw.ends'), t('withdraw.deletes'), t('withdraw.forever')];
  return <FinalForm points={points} button={t('withdraw')} kind="danger" done={t('withdraw.done')} act={withdraw} onClose={onClose} />;
}
