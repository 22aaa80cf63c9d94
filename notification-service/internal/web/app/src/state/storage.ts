/**
 * The data that the page keeps in the browser. Settings belong to the browser. Drafts and
 * follows of a user belong to that user: nobody else is shown them, also
 * not the next one at a shared computer.
 *
 * Without a user they belong to the tab: a reload, and a phone that puts the tab
 * away while its camera is open, cost nothing either.
 *
 *     nobody ──signs in──▶ a user ──signs out, or another signs in──▶ removed
 *        │                    │
 *        │                    └──session ends by itself──▶ kept, not shown,
 *        │                                                 until the same user returns
 *        └──becomes a guest, and the other way round: it goes on, since guests cannot return
 */
import { batch, effect, signal, type Signal } from '@preact/signals';

const SETTING = 'cityconnect.';
/** Whose data is kept: a hash of the user's id. */
const OWNER = 'cityconnect.owner';
const USER_DATA = 'cityconnect.user.';
/** Drafts without a session: of this tab alone, and gone at the next sign-in. */
const NOBODY = 'cityconnect.nobody.';
/** Written by earlier versions of the page, which did not say whose they are. */
const OWNERLESS = ['cityconnect.draft', 'cityconnect.followed'];

/** A signal that survives a reload, where storage is allowed. */
export function browserSetting<T extends string>(name: string, initial: T): Signal<T> {
  const value = signal((load(SETTING + name) ?? initial) as T);
  effect(() => save(SETTING + name, value.value));
  return value;
}

interface UserData {
  /** Loads the value of the present owner, or the initial one. */
  load(): void;
  /** Keeps the present value as its present owner's. */
  keep(): void;
}

const allUserData: UserData[] = [];
/** The hash of the user whose data is shown, empty if it cannot be made; absent while nobody is signed in. */
let owner: string | undefined;

/** A signal that survives a reload for the user who is signed in, and for no one else; in this tab if nobody is. */
export function userData<T>(name: string, initial: () => T): Signal<T> {
  const read = () => {
    if (owner === undefined) return load(NOBODY + name, 'session');
    return owner === '' ? null : load(`${USER_DATA}${owner}.${name}`);
  };
  const value = signal(initial());
  const data = {
    load() {
      const text = read();
      value.value = text ? parse(text, initial) : initial();
    },
    keep() {
      const text = JSON.stringify(value.value);
      if (owner === undefined) save(NOBODY + name, text, 'session');
      // Another tab may have signed out, and this one not know it yet.
      else if (owner && load(OWNER) === owner) save(`${USER_DATA}${owner}.${name}`, text);
    },
  };
  allUserData.push(data);
  data.load();
  effect(data.keep);
  return value;
}

/** Shows the data of the user with this id, and removes everyone else's; what is shown goes on as the user's for one who has just become a guest. */
export async function openUserData(id: string, goesOn?: boolean): Promise<void> {
  const hash = await hashOf(id);
  remove((key) => OWNERLESS.includes(key) || (key.startsWith(USER_DATA) && !key.startsWith(`${USER_DATA}${hash}.`)));
  remove((key) => key.startsWith(NOBODY), 'session');
  if (hash) save(OWNER, hash);
  show(hash ?? '', goesOn);
}

/** Hides the user's data, and keeps it for them; a guest's goes on as this tab's. */
export function closeUserData(goesOn?: boolean): void {
  show(undefined, goesOn);
}

/** Removes the user's data from this browser. */
export function removeUserData(): void {
  remove((key) => key === OWNER || key.startsWith(USER_DATA));
  remove((key) => key.startsWith(NOBODY), 'session');
  show(undefined);
}

function show(hash: string | undefined, goesOn = false): void {
  owner = hash;
  batch(() => {
    for (const data of allUserData) data[goesOn ? 'keep' : 'load']();
  });
}

/** Absent where the page came by plain HTTP from another host: data lasts until the page is closed there. */
async function hashOf(id: string): Promise<string | undefined> {
  const subtle = crypto.subtle as SubtleCrypto | undefined;
  const hash = await subtle?.digest('SHA-256', new TextEncoder().encode(id));
  return hash && Array.from(new Uint8Array(hash).subarray(0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** An entry of an earlier version of the page may not be JSON. */
function parse<T>(text: string, initial: () => T): T {
  try {
    return JSON.parse(text) as T;
  } catch {
    return initial();
  }
}

// Storage may be full or forbidden: values then last until the page is closed.

/** Of the browser, or of this tab alone. Naming one that is forbidden throws. */
const storage = (of: 'local' | 'session') => (of === 'local' ? localStorage : sessionStorage);

function load(key: string, of: 'local' | 'session' = 'local'): string | null {
  try {
    return storage(of).getItem(key);
  } catch {
    return null;
  }
}

function save(key: string, text: string, of: 'local' | 'session' = 'local'): void {
  try {
    storage(of).setItem(key, text);
  } catch {
    // See above.
  }
}

function remove(which: (key: string) => boolean, of: 'local' | 'session' = 'local'): void {
  try {
    for (const key of Object.keys(storage(of)).filter(which)) storage(of).removeItem(key);
  } catch {
    // See above.
  }
}
