/**
 * The things that somebody began before signing in and continues afterwards: a report,
 * or a vote. It is kept for this tab alone, from the moment at which its owner
 * leaves for the sign-in, and not for long: the next one at a shared computer
 * must not find it. It is shown after the sign-in, and never sent by itself.
 */
import type { VoteType } from '../api/client';
import type { Draft } from './draft';

interface HandOver {
  draft?: Draft;
  vote?: { report: string; type: VoteType };
}

const KEY = 'cityconnect.handover';
/** Long enough to find a password. */
const KEPT_MS = 10 * 60_000;

export function handOver(what: HandOver): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ ...what, at: Date.now() }));
  } catch {
    // Storage may be forbidden; it is lost then.
  }
}

/** Returns what was handed over, and forgets it. */
export function takeOver(): HandOver {
  try {
    const text = sessionStorage.getItem(KEY);
    sessionStorage.removeItem(KEY);
    const { at, ...what } = JSON.parse(text ?? '{}') as HandOver & { at?: number };
    return at !== undefined && Date.now() - at < KEPT_MS ? what : {};
  } catch {
    return {};
  }
}
