import { useRef, useState } from 'preact/hooks';

import { must, notificationService, reportService } from '../../api/client';
import { t } from '../../lang/settings';
import { signOut } from '../../shell/menu';
import { FinalForm } from '../../ui/final-form';
import { Modal } from '../../ui/modal';

/** The end of one's account here, which is asked for twice. */
export function EraseAccount() {
  const [asked, setAsked] = useState(0);
  const ask = (times: number) => () => setAsked(times);
  /** Whether report-service has accepted it, which refuses the user from then on. */
  const reports = useRef(false);
  const erase = async () => {
    if (!reports.current) await must(reportService.DELETE('/reports/mine/data'));
    reports.current = true;
    await must(notificationService.DELETE('/me/data'));
    await signOut().catch(() => location.replace('/')); // nobody is signed in any longer
  };
  return (
    <section class="panel stack" aria-labelledby="erase">
      <h2 id="erase">{t('erase')}</h2>
      <p class="quiet">{t('erase.hint')}</p>
      <button type="button" class="danger-quiet" aria-haspopup="dialog" onClick={ask(1)}>
        {t('erase.ask')}
      </button>
      {asked === 1 && (
        <Modal title={t('erase.title')} onClose={ask(0)}>
          <FinalForm
            points={[t('erase.reports'), t('erase.rest'), t('erase.again'), t('erase.forever')]}
            button={t('erase.go-on')}
            act={() => Promise.resolve()}
            onClose={ask(2)}
          />
        </Modal>
      )}
      {asked === 2 && (
        <Modal title={t('erase.sure')} onClose={ask(0)}>
          <FinalForm points={[t('erase.forever')]} button={t('erase.do')} act={erase} onClose={ask(0)} />
        </Modal>
      )}
    </section>
  );
}
