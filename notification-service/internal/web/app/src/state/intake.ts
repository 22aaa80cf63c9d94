/**
 * The form of an official who files for somebody at the counter or on the telephone. It is kept while
 * the page is open, and not in the browser: others use it as well, and it may have an address.
 */
import { signal } from '@preact/signals';

import { must, notificationService, reportService, type Caller, type NewReport, type Source } from '../api/client';
import { language, languages } from '../lang/i18n';
import type { Place } from '../map/place-fields';
import { dropChosen, ofDraft, sendChosen } from '../photos/choice';
import { config } from './config';
import { randomKey } from './draft';

export interface Intake extends Place {
  /** However often it is sent, it is filed once. */
  key: string;
  source: Source;
  title: string;
  description: string;
  category?: number | undefined;
  forCity: boolean;
  /** Where the caller wants mails; empty for none. */
  mail: string;
  language: string;
}

/** The language of mails to a caller: the city's first that there are words in, whatever the official's is. */
export const ofMails = (): string => config.city?.languages.find((tag) => tag in languages()) ?? language.value;

const empty = (): Intake => ({
  key: randomKey(),
  source: 'telephone',
  title: '',
  description: '',
  address: '',
  forCity: false,
  mail: '',
  language: ofMails(),
});

export const intake = signal(empty());

export function updateIntake(part: Partial<Intake>): void {
  intake.value = { ...intake.value, ...part };
}

export function discardIntake(): void {
  void dropChosen(ofDraft(intake.value.key));
  intake.value = empty();
}

/** Files it and enters the caller's address. After a failure it may be sent again. Returns the report's id. */
export async function fileIntake(): Promise<string> {
  const { key, source, title, description, category = 0, position, address, thing, forCity, mail, language } = intake.value;
  const body: NewReport = {
    source,
    title: title.trim(),
    description,
    category_id: category,
    privacy_level: 'anonymous',
    ...(forCity && { visibility: 'officials' }),
    ...(address.trim() && { address: address.trim() }),
    ...(thing && { asset: thing.asset }),
    ...position,
  };
  const { id } = await must(reportService.POST('/reports', { params: { header: { 'Idempotency-Key': key } }, body }));
  await sendChosen(ofDraft(key), id); // before the key is gone by which they are found
  if (mail.trim()) {
    const { intake: filed } = await must(reportService.GET('/reports/{id}/work', { params: { path: { id } } }));
    await enterCaller(id, filed?.caller, mail, language);
  }
  discardIntake();
  return id;
}

/** Says where the caller is written to, or has the link sent there again. */
export async function enterCaller(id: string, caller = '', mail: string, language: string): Promise<Caller> {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return await must(notificationService.PUT('/callers', { body: { report_id: id, caller, address: mail.trim(), language, zone } }));
}

export const readCaller = (id: string, caller?: string): Promise<Caller> =>
  must(notificationService.POST('/callers/state', { body: { report_id: id, ...(caller && { caller }) } }));
