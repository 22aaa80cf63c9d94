/**
 * Photos that the service does not have yet, kept in the browser so that they
 * survive a reload. They belong to one user; the next person to sign in finds none.
 * Photos that somebody chooses before signing in are kept in memory, and go into the
 * browser for as long as a sign-in takes.
 */
export interface Upload {
  /** By which the service knows a repetition. The photo gets another id from it, and nobody sees this one. */
  id: string;
  /** When it was chosen, in milliseconds, for the order of what is sent. It stays in the browser. */
  chosen?: number;
  /** The report that it is sent to, or the place of one that is still being written. */
  report: string;
  /** The id of the user who chose it; empty before a sign-in. */
  user: string;
  alt: string;
  /** Absent unless it shows the finished work. */
  purpose?: 'after';
  picture: Blob;
  /** How often it is to be turned to the right. */
  quarters: number;
  /** When it was kept, if that was before a sign-in. */
  at?: number;
}

const NAME = 'cityconnect';
const STORE = 'uploads';
/** Long enough to find a password, as in state/handover.ts. */
const NOBODYS_MS = 10 * 60_000;

/** Uploads that the browser does not keep: storage may be full or forbidden, or they have no owner yet. */
const memory = new Map<string, Upload>();

async function open(): Promise<IDBDatabase | undefined> {
  return new Promise((resolve) => {
    let asked: IDBOpenDBRequest;
    try {
      asked = indexedDB.open(NAME, 1);
    } catch {
      return resolve(undefined);
    }
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE, { keyPath: 'id' });
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => resolve(undefined);
    asked.onblocked = () => resolve(undefined);
  });
}

/** Returns undefined if it failed. */
async function within<T>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => IDBRequest<T>): Promise<T | undefined> {
  const database = await open();
  if (!database) return undefined;
  try {
    return await new Promise<T | undefined>((resolve) => {
      const transaction = database.transaction(STORE, mode);
      const asked = work(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(asked.result);
      transaction.onerror = () => resolve(undefined);
      transaction.onabort = () => resolve(undefined);
    });
  } finally {
    database.close();
  }
}

export async function keep(upload: Upload): Promise<void> {
  if (upload.user && (await within('readwrite', (store) => store.put(upload))) !== undefined) memory.delete(upload.id);
  else memory.set(upload.id, upload);
}

export async function forget(id: string): Promise<void> {
  memory.delete(id);
  await within('readwrite', (store) => store.delete(id));
}

/** Lets what nobody in particular has chosen outlive the way to the sign-in and back. */
export async function keepForSignIn(): Promise<void> {
  for (const upload of memory.values()) {
    if (!upload.user) await within('readwrite', (store) => store.put({ ...upload, at: Date.now() }));
  }
}

/** Makes what a guest has chosen for a draft nobody's, as long as the page is open: their session is over. */
export async function disown(guest: string): Promise<void> {
  for (const upload of await kept(guest)) {
    if (!upload.report.startsWith('draft ')) continue;
    await forget(upload.id);
    memory.set(upload.id, { ...upload, user: '' });
  }
}

/**
 * The user's uploads, in the order in which they were chosen: to a report, or
 * all of them. Those of others are removed. What was chosen for this report by
 * whoever had not signed in yet is the user's from now on.
 */
export async function kept(user: string, report?: string): Promise<Upload[]> {
  const read = (await within('readonly', (store) => store.getAll() as IDBRequest<Upload[]>)) ?? [];
  const stored = await Promise.all(read.map(inMemory));
  const all = new Map([...stored, ...memory.values()].map((upload) => [upload.id, upload]));
  const found: Upload[] = [];
  for (const upload of all.values()) {
    const nobodys = !upload.user;
    if (nobodys && user && upload.report === report && !tooOld(upload)) {
      const adopted = { ...upload, user };
      delete adopted.at;
      await keep(adopted);
      found.push(adopted);
    } else if (nobodys ? tooOld(upload) : user && upload.user !== user) await forget(upload.id);
    else if (upload.user === user && (report === undefined || upload.report === report)) found.push(upload);
  }
  // An earlier page chose ids in their order, and noted no time.
  return found.sort((a, b) => (a.chosen ?? 0) - (b.chosen ?? 0) || (a.id < b.id ? -1 : 1));
}

/**
 * The upload with its picture in memory. In Firefox, a picture that the database has
 * returned cannot be read any more once the upload is kept again.
 */
async function inMemory(upload: Upload): Promise<Upload> {
  const { picture } = upload;
  const bytes = await picture.arrayBuffer().catch(() => undefined);
  return bytes ? { ...upload, picture: new Blob([bytes], { type: picture.type }) } : upload;
}

function tooOld({ at }: Upload): boolean {
  return at !== undefined && Date.now() - at > NOBODYS_MS;
}

/** Removes kept photos at a sign-out. */
export async function forgetAll(): Promise<void> {
  memory.clear();
  await within('readwrite', (store) => store.clear());
}

let lastMs = 0;

/** The time, but later than any that this returned before. */
export function nextMoment(): number {
  return (lastMs = Math.max(lastMs + 1, Date.now()));
}

/**
 * A random UUID. One with a time in it would tell by how much this device's clock
 * is wrong, and so whose device it is. crypto.randomUUID is missing where the page
 * came by plain HTTP.
 */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = 0x40 | (bytes[6]! & 0x0f);
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
