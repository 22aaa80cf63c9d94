import { t } from '../../lang/report';
import { FinalForm } from '../../ui/final-form';

/** Asks the reporter whether to withdraw the report. */
export function WithdrawForm({ withdraw, onClose }: { withdraw(): Promise<void>; onClose(): void }) {
  const points = [t('withdraw.hides'), t('withdraw.ends'), t('withdraw.deletes'), t('withdraw.forever')];
  return <FinalForm points={points} button={t('withdraw')} done={t('withdraw.done')} act={withdraw} onClose={onClose} />;
}
