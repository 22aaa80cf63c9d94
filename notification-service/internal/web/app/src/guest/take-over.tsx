import { useEffect, useState } from 'preact/hooks';

import { Failure, must, reportService } from '../api/client';
import { t, tn } from '../lang/guest';
import { loadNotifications } from '../state/notifications';
import { session } from '../state/session';
import { toast } from '../state/toasts';
import { useAct } from '../ui/act';
import { Modal } from '../ui/modal';
import { Fault } from '../ui/problem';
import { reloadPage } from '../ui/reload';
import { href, route } from '../ui/router';

const PATH = '/guests/adoption';

/** Asks who has signed in once, whether the account takes over what was reported here without one. */
export function TakeOver() {
  const [reports, setReports] = useState<number>();
  const { busy, error, run } = useAct();
  useEffect(() => {
    must(reportService.GET(PATH))
      .then((found) => (found.reports > 0 ? setReports(found.reports) : leave()))
      .catch((failure: unknown) => failure instanceof Failure && failure.kind === 'no-guest' && answered());
  }, []);
  const take = async () => {
    const taken = await must(reportService.POST(PATH));
    answered();
    if (route.value.path[0] === 'mine') return reloadPage();
    toast(tn('guest.adopt.done', taken.reports), href('mine'));
    await loadNotifications().catch(() => {});
  };
  if (reports === undefined) return null;
  return (
    <Modal title={t('guest.adopt')} onClose={answered}>
      <div class="stack" aria-busy={busy}>
        <p>
          <strong>{tn('guest.adopt.count', reports)}</strong>
        </p>
        <p>{t('guest.adopt.does')}</p>
        <p class="quiet">
          {t('guest.adopt.not')} {t('guest.adopt.once')}
        </p>
        <Fault error={error} />
        <div class="bar">
          <button type="button" class="primary" onClick={() => void run(take)}>
            {t('guest.adopt.yes')}
          </button>
          <button type="button" onClick={() => void run(leave)}>
            {t('guest.adopt.no')}
          </button>
        </div>
      </div>
    </Modal>
  );
}

async function leave(): Promise<void> {
  await must(reportService.DELETE(PATH));
  answered();
}

/** The question is over for this page; without an answer it comes again with the next one. */
function answered(): void {
  if (!session.value) return;
  const { adoptable: _, ...rest } = session.value;
  session.value = rest;
}
