/**
 * Reports without an account. Whoever sends one becomes a guest, with a session of
 * this browser, and not before.
 *
 *     nobody ──sends──▶ a guest ──signs in──▶ an account, which may take the reports over
 *                        │    ▲
 *                        │    └──a code from another browser
 *                        └──ends it, or does not come for 30 days──▶ nobody
 */
import { Failure, must, reportService } from '../api/client';
import { announceChange, restartLive } from '../live/live';
import { ofDraft } from '../photos/choice';
import { disown, keepForSignIn, kept } from '../photos/store';
import { draft, updateDraft, type Draft } from '../state/draft';
import { handOver, takeOver } from '../state/handover';
import { followOwn } from '../state/own';
import { readSession, session, sessionEnded, type Session } from '../state/session';
import { openUserData } from '../state/storage';
import { reloadPage } from '../ui/reload';
import { href } from '../ui/router';
import '../lang/guest'; // the words for what the city refuses

/** Starts a session of a guest; the draft is kept. */
export async function becomeGuest(): Promise<void> {
  const found = await must(reportService.POST('/guests')).catch(async (error: unknown) => {
    // Another tab was faster, and somebody is signed in or a guest there.
    if (error instanceof Failure && error.kind === 'signed-in') await reloadWith({ sending: false });
    throw error;
  });
  updateDraft({ asGuest: false });
  announceChange('session');
  // Only a reload removes everything that the page holds of the user before.
  if (sessionEnded.value) return reloadWith({ sending: true });
  await enter(found);
}

async function enter(found: Session): Promise<void> {
  await openUserData(found.sub, true);
  await kept(found.sub, ofDraft(draft.value.key)); // photos become the guest's, and outlive the page
  session.value = found;
  void followOwn().then(restartLive);
}

/** The page is loaded again with the draft, which stays what it is. */
async function reloadWith(how: Pick<Draft, 'sending'>): Promise<never> {
  await takeAlong(how);
  reloadPage();
  return new Promise<never>(() => {});
}

const isWritten = ({ title, description, address, category_id, position }: Draft) =>
  [title, description, address, category_id, position].some(Boolean);

/** Keeps the drafts of a guest, or of a visitor without a session, when the same person signs in. */
export async function takeAlong(how: Pick<Draft, 'sending'> = { sending: false }): Promise<void> {
  if (session.value?.guest) await disown(session.value.sub);
  await keepForSignIn();
  if (isWritten(draft.value)) handOver({ ...takeOver(), draft: { ...draft.value, ...how } });
}

/** Does so where another tab has become a guest. */
export async function goAlong(): Promise<void> {
  if ((await readSession())?.guest) await takeAlong();
}

/** Goes on as the guest of another browser, whose code it is. */
export async function enterCode(code: string): Promise<void> {
  await must(reportService.POST('/guests/session', { body: { code } }));
  await takeAlong();
  announceChange('session');
  location.replace(href('mine'));
}

/** How many reports the guest has, up to the most that are counted. */
export async function countReports(): Promise<number> {
  const { reports } = await must(reportService.GET('/reports/mine', { params: { query: { limit: MOST, brief: true } } }));
  return reports.length;
}

const MOST = 100;
