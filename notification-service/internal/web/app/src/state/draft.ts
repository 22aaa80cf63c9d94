/**
 * The report that the user is writing. It is kept in this browser until it is
 * filed, so that neither a reload nor a lost connection costs a word. Its
 * idempotency key is made once: however often it is sent, it is filed once.
 *
 *     writing ──send──▶ sending ──filed──▶ an empty draft
 *        ▲                 │ └─no answer─▶ sending, again
 *        └─────refused─────┘
 *
 * A draft belongs to one user and is never sent as another: the server
 * remembers idempotency keys for each user alone. Nobody's is a guest's once it is
 * sent without an account, and not before: a visit alone makes nobody a guest.
 */
import { signal } from '@preact/signals';

import { Failure, must, notificationService, reportService, type Asset, type NewReport, type Report } from '../api/client';
import { dropChosen, ofDraft, sendChosen } from '../photos/choice';
import { assetLabel } from './assets';
import { confirmUser, session } from './session';
import { userData } from './storage';

export interface Draft {
  key: string;
  title: string;
  description: string;
  category_id?: number;
  position?: { latitude: number; longitude: number };
  address: string;
  /** The thing of the city that it is about, and what that is called. */
  asset?: { name: string; label: string };
  /** Absent until it is chosen: neither is the usual one. */
  privacy_level?: NewReport['privacy_level'];
  /** Only the city is to see it. */
  forCity?: boolean;
  /** Mails about it are wanted, although it is anonymous: they tell others that one has filed something. */
  mail?: boolean;
  /** The category and the place of which the reader has said that no report nearby is about the same problem. */
  another?: string;
  /** The parameters of the address that opened it, once they are in here. */
  link?: string;
  /** It is to be filed without an account, by somebody who is to become a guest for it. */
  asGuest?: boolean;
  /** It was sent, and there was no answer yet that settles it. */
  sending: boolean;
}

const empty = (): Draft => ({
  key: randomKey(),
  title: '',
  description: '',
  address: '',
  sending: false,
});

export const draft = userData<Draft>('draft', empty);
export const draftError = signal<unknown>();

export function updateDraft(part: Partial<Draft>): void {
  draft.value = { ...draft.value, ...part };
}

/** The facts that a thing of the city adds to a report on it, besides its place. */
export const ofAsset = (thing: Asset): Partial<Draft> => ({
  asset: { name: thing.asset, label: assetLabel(thing) },
  category_id: thing.category_id,
});

export function discardDraft(): void {
  void dropChosen(ofDraft(draft.value.key));
  draft.value = empty();
  draftError.value = undefined;
}

let filing: Promise<Report | undefined> | undefined;

/**
 * Files the draft, and returns the report, or nothing if it was not filed.
 * When no answer comes the draft stays as it was sent: to try again is harmless.
 * Nobody becomes a guest for it, if that was asked for.
 */
export function fileDraft(becomeGuest: () => Promise<void>): Promise<Report | undefined> {
  filing ??= file(becomeGuest).finally(() => (filing = undefined));
  return filing;
}

async function file(becomeGuest: () => Promise<void>): Promise<Report | undefined> {
  draftError.value = undefined;
  try {
    if (!session.value && draft.value.asGuest) {
      updateDraft({ sending: true });
      await becomeGuest();
    } else if (!(await confirmUser())) {
      // A session that is over was another's: only its owner knows whether to send this again.
      if (!session.value) updateDraft({ sending: false });
      return undefined;
    }
    updateDraft({ sending: true });
    const { key, position, category_id = 0, title, description, address, asset, forCity, mail } = draft.value;
    // The form requires a choice of privacy; without one nobody is named, and guests have no name.
    const privacy_level = (!session.value?.guest && draft.value.privacy_level) || 'anonymous';
    const body: NewReport = {
      title: title.trim(),
      description,
      category_id,
      privacy_level,
      ...(forCity && { visibility: 'officials' }),
      ...(address && { address }),
      ...(asset && { asset: asset.name }),
      ...position,
    };
    const report = await must(reportService.POST('/reports', { params: { header: { 'Idempotency-Key': key } }, body }));
    await sendChosen(ofDraft(key), report.id); // before the key is gone by which they are found
    if (privacy_level === 'anonymous' && mail) await wantMails(report.id);
    discardDraft();
    return report;
  } catch (error) {
    draftError.value = error;
    updateDraft({ sending: error instanceof Failure && error.uncertain });
    return undefined;
  }
}

/**
 * Has the reporter told of an anonymous report by mail. report-service does not
 * know of it. Without an answer the draft is sent again, under its key, and so is this.
 */
async function wantMails(reportId: string): Promise<void> {
  try {
    await must(notificationService.PUT('/me/mail-consents', { body: { report_id: reportId, mail: true } }));
  } catch (error) {
    if (error instanceof Failure && error.uncertain) throw error;
    // The report is filed all the same, and gets no mails.
  }
}

/** An idempotency key. crypto.randomUUID is missing where the page came by plain HTTP. */
export function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
