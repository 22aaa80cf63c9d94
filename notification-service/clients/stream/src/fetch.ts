/** A connection by fetch, which sends a token and sees the status of an answer. */
import type { Connect } from './core.js';
import { newParser } from './parser.js';

export interface FetchOptions {
  /** Sent with each connection: `Authorization`, or a `Cookie` outside of browsers. A function may renew a token. */
  headers?: Record<string, string> | (() => Record<string, string> | Promise<Record<string, string>>);
  /** Whether a browser sends its cookies. */
  credentials?: RequestCredentials;
  /** In place of the global fetch. */
  fetch?: typeof fetch;
}

/** The wait for a stream that ended without saying how long to wait, as browsers have it. */
const DEFAULT_RETRY_MS = 3_000;
/** A server that says less would be asked without a pause. */
const MIN_RETRY_MS = 100;
/** A server that says more in Retry-After is mistaken. */
const MAX_RETRY_AFTER_MS = 600_000;

export function fetchConnect({ headers, credentials, fetch = globalThis.fetch }: FetchOptions): Connect {
  return (url, cursor, { onMessage, onEnd }) => {
    const aborter = new AbortController();
    const { signal } = aborter;
    const end = (status?: number, waitMs?: number) => {
      if (signal.aborted) return;
      aborter.abort(); // what is left of the answer is not read
      onEnd(status, waitMs);
    };
    const request = async () => {
      const own = typeof headers === 'function' ? await headers() : headers;
      return fetch(url, {
        headers: { ...own, Accept: 'text/event-stream', ...(cursor && { 'Last-Event-ID': cursor }) },
        cache: 'no-store',
        signal,
        ...(credentials && { credentials }),
      });
    };
    const run = async () => {
      const answer = await request().catch(() => undefined); // no server: like one that answers nothing
      if (!answer) return end();
      if (answer.status !== 200 || !answer.body || !/^text\/event-stream\b/.test(answer.headers.get('Content-Type') ?? '')) {
        return end(answer.status === 200 ? undefined : answer.status, retryAfterMs(answer));
      }
      let received = false as boolean;
      const parser = newParser((type, data, id) => {
        received = true;
        if (signal.aborted) return; // closed by what came just before
        try {
          onMessage(type, data, id);
        } catch (error) {
          // The application's mistake is not the connection's.
          queueMicrotask(() => {
            throw error;
          });
        }
      }, cursor);
      try {
        await read(answer.body, parser.feed);
      } catch {
        // It broke: what came is valid all the same.
      }
      const { retryMs = received ? DEFAULT_RETRY_MS : undefined } = parser;
      end(undefined, retryMs && Math.max(retryMs, MIN_RETRY_MS));
    };
    void run();
    return { close: () => aborter.abort() };
  };
}

async function read(body: ReadableStream<Uint8Array>, feed: (text: string) => void): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    feed(decoder.decode(value, { stream: true }));
  }
}

/** The time of Retry-After, and up to half as long again: all clients get the same seconds. */
function retryAfterMs({ headers }: Response): number | undefined {
  const value = headers.get('Retry-After');
  if (!value) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - Date.now();
  return ms > 0 ? Math.min(ms, MAX_RETRY_AFTER_MS) * (1 + Math.random() / 2) : undefined;
}
