/**
 * Photos on their way. They are sent one after another, whatever is on the
 * screen, until the service has them or refuses them for good: on a slow line
 * the first is there sooner.
 */
import { signal } from '@preact/signals';

import { session } from '../state/session';
import { forget, kept, type Upload } from './store';
import { send } from './send';

export interface Outgoing extends Upload {
  /** The address of what is shown of it. */
  preview: string;
  /** From 0 to 1. */
  progress: number;
  /** Why it was refused for good. */
  error?: unknown;
}

export const outgoing = signal<Outgoing[]>([]);

let ended = new AbortController();
let running: Promise<void> | undefined;

export function sendLater(upload: Upload): void {
  if (outgoing.value.some(({ id }) => id === upload.id)) return;
  outgoing.value = [...outgoing.value, { ...upload, preview: URL.createObjectURL(upload.picture), progress: 0 }];
  running ??= run(ended.signal).finally(() => (running = undefined));
}

async function run(signal: AbortSignal): Promise<void> {
  for (;;) {
    const next = outgoing.value.find(({ error }) => error === undefined);
    if (!next || signal.aborted) return;
    try {
      if (await send(next, (progress) => change(next.id, { progress }), signal)) dropOutgoing(next.id);
    } catch (failure) {
      change(next.id, { error: failure });
    }
  }
}

function change(id: string, by: Partial<Outgoing>): void {
  outgoing.value = outgoing.value.map((one) => (one.id === id ? { ...one, ...by } : one));
}

/** Removes an outgoing photo, because it has arrived or was cancelled. */
export function dropOutgoing(id: string): void {
  for (const one of outgoing.value) if (one.id === id) URL.revokeObjectURL(one.preview);
  outgoing.value = outgoing.value.filter((one) => one.id !== id);
  void forget(id);
}

/** Sends what the browser has kept of the user, until the session ends. */
export async function sendKept(): Promise<void> {
  const user = session.value?.sub;
  if (!user) return;
  const end = session.subscribe((now) => {
    if (now?.sub === user) return;
    end();
    stop();
  });
  // A photo that is still being chosen has a place in the report's stead.
  for (const upload of await kept(user)) if (!upload.report.includes(' ') && session.value?.sub === user) sendLater(upload);
}

/** Whatever has not arrived stays kept. */
function stop(): void {
  ended.abort();
  ended = new AbortController();
  for (const { preview } of outgoing.value) URL.revokeObjectURL(preview);
  outgoing.value = [];
}
