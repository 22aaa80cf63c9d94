/**
 * Photos that somebody has chosen and not sent: to a report that is shown, or to
 * one that is still being written.
 */
import { signal } from '@preact/signals';

import { session } from '../state/session';
import { forget, keep, kept, newId, nextMoment, type Upload } from './store';
import { sendLater } from './uploads';
import { scaled } from './scale';

/** How many photos a report may have. */
export const MAX_PHOTOS = 5;

/** Where the photos wait of a draft with this key. */
export const ofDraft = (key: string) => `draft ${key}`;

/** Where the photos wait that are to be added to a report. */
export const ofReport = (id: string) => `chosen ${id}`;

/** Where the photos wait that belong to an answer to officials. */
export const ofAnswer = (id: string) => `answer ${id}`;

/** Where the photos of the finished work wait. */
export const ofFinishedWork = (id: string) => `after ${id}`;

export interface Chosen extends Upload {
  /** The address of what is shown of it. */
  preview: string;
}

export function createChoice(place: string) {
  const list = signal<Chosen[]>([]);

  let adding = Promise.resolve();

  /** Adds pictures, made as small as they are sent. */
  const add = (files: File[]) => (adding = adding.then(() => addAll(files)));
  const addAll = async (files: File[]) => {
    for (const file of files) {
      const upload = {
        id: newId(),
        chosen: nextMoment(),
        report: place,
        user: session.value?.sub ?? '',
        alt: '',
        quarters: 0,
        picture: await scaled(file),
      };
      await keep(upload);
      list.value = [...list.value, { ...upload, preview: URL.createObjectURL(upload.picture) }];
    }
  };

  const change = (id: string, part: Partial<Pick<Upload, 'alt' | 'quarters'>>) => {
    list.value = list.value.map((one) => (one.id === id ? { ...one, ...part } : one));
    const found = list.value.find((one) => one.id === id);
    if (!found) return;
    const { preview: _, ...upload } = found;
    void keep(upload);
  };

  const drop = (id: string) => {
    for (const one of list.value) if (one.id === id) URL.revokeObjectURL(one.preview);
    list.value = list.value.filter((one) => one.id !== id);
    void forget(id);
  };

  const send = async (report: string) => {
    await adding;
    close();
    await sendChosen(place, report);
  };

  const close = () => {
    for (const { preview } of list.value) URL.revokeObjectURL(preview);
    list.value = [];
  };

  /** Shows what was chosen before, until the result is called. */
  const open = () => {
    let latest = true;
    void kept(session.value?.sub ?? '', place).then((uploads) => {
      if (latest) list.value = uploads.map((upload) => ({ ...upload, preview: URL.createObjectURL(upload.picture) }));
    });
    return () => {
      latest = false;
      close();
    };
  };

  /** Resolves once the list has all that was chosen. */
  const added = () => adding;

  return { list, add, added, change, drop, send, open };
}

export type Choice = ReturnType<typeof createChoice>;

/** Sends what was chosen at a place to a report, which exists by now. */
export async function sendChosen(place: string, report: string): Promise<void> {
  if (!session.value) return;
  for (const upload of await kept(session.value.sub, place)) {
    // It is kept as it is sent: the same bytes each time.
    const ready = {
      ...upload,
      report,
      quarters: 0,
      picture: upload.quarters ? await scaled(upload.picture, upload.quarters) : upload.picture,
    };
    await keep(ready);
    sendLater(ready);
  }
}

/** Forgets what was chosen at a place. */
export async function dropChosen(place: string): Promise<void> {
  for (const { id } of await kept(session.value?.sub ?? '', place)) await forget(id);
}
