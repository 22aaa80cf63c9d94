/** Sends one picture, as often as it takes. */
import { Failure, type Problem } from '../api/client';
import type { Upload } from './store';

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

/** An upload, and the end of the link of whoever has no account. */
type Sent = Pick<Upload, 'id' | 'report' | 'alt' | 'picture' | 'purpose'> & { token?: string };

/** Whether the same bytes may be taken later. */
function passes(failure: Failure): boolean {
  return failure.uncertain || ['request-timeout', 'too-many-requests', 'malformed-body', 'no-answer'].includes(failure.kind);
}

/**
 * Sends the upload until it is accepted or refused for good, which throws a
 * Failure. It is the same request each time: the service knows a repetition by
 * the id. Returns false if the signal ended it before.
 */
export async function send(upload: Sent, progress: (fraction: number) => void, signal: AbortSignal): Promise<boolean> {
  for (let pause = FIRST_PAUSE_MS; !signal.aborted; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    try {
      if (await once(upload, progress, signal)) return true;
    } catch (failure) {
      if (!(failure instanceof Failure) || !passes(failure)) throw failure;
    }
    progress(0);
    await online(pause, signal);
  }
  return false;
}

/** By XMLHttpRequest, since `fetch` reports no progress of an upload. Returns false if it was ended. */
function once(upload: Sent, progress: (fraction: number) => void, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const purpose = upload.purpose ? `&purpose=${upload.purpose}` : '';
    request.open('PUT', `/reports/${upload.report}/photos/${upload.id}?alt=${encodeURIComponent(upload.alt)}${purpose}`);
    request.setRequestHeader('Content-Type', upload.picture.type || 'image/jpeg');
    if (upload.token) request.setRequestHeader('Authorization', `Bearer ${upload.token}`);
    request.upload.onprogress = (event) => event.lengthComputable && progress(event.loaded / event.total);
    request.onerror = () => reject(new Failure());
    request.onabort = () => resolve(false);
    request.onload = () => (request.status < 300 ? resolve(true) : reject(new Failure(problemOf(request))));
    signal.addEventListener('abort', () => request.abort(), { once: true });
    request.send(upload.picture);
  });
}

function problemOf(request: XMLHttpRequest): Problem {
  try {
    return JSON.parse(request.responseText) as Problem;
  } catch {
    return { type: '#unavailable', title: request.statusText, status: request.status };
  }
}

/** Waits for a while, less if the line comes back before. */
function online(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      window.removeEventListener('online', done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    window.addEventListener('online', done);
    signal.addEventListener('abort', done);
  });
}
