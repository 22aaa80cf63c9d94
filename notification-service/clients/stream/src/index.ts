/**
 * CityConnect's live streams, in Node.js and in browsers:
 *
 *     const stream = openStream({
 *       url: 'https://city.example.org/notifications/stream',
 *       headers: { Authorization: `Bearer ${token}` },
 *       cursor: loadCursor(),
 *       onEvent: ({ type, data, id }) => { … saveCursor(id); },
 *     });
 */
import { follow, type Stream, type StreamOptions as CoreOptions } from './core.js';
import { fetchConnect, type FetchOptions } from './fetch.js';

export type { Stream, StreamEvent } from './core.js';
export type { FetchOptions } from './fetch.js';
export { furthest, isAhead, steps } from './position.js';

export interface StreamOptions extends Omit<CoreOptions, 'mayReopen'>, FetchOptions {
  /**
   * Asked before an ended stream is opened again; false ends it permanently. Without
   * it, the answers that say that it is of no use end the stream: 204, 400, 401, 403
   * and 404.
   */
  mayReopen?: CoreOptions['mayReopen'];
  /** Called once, when the stream has ended permanently. */
  onEnd?(status?: number): void;
}

const FINAL = [204, 400, 401, 403, 404];

/** Opens a stream, which stays until it is closed, or may not be opened again. */
export function openStream({ mayReopen = isTemporary, onEnd, ...options }: StreamOptions): Stream {
  return follow(fetchConnect(options), {
    ...options,
    mayReopen: async (status) => {
      const may = await mayReopen(status);
      if (!may) onEnd?.(status);
      return may;
    },
  });
}

const isTemporary = (status?: number) => status === undefined || !FINAL.includes(status);
