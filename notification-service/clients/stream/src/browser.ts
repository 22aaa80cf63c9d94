/**
 * The stream in a browser, by its EventSource, which cookies sign in: the smallest
 * client, of one kilobyte. EventSource reconnects by itself after most failures, after
 * the time that the server says, with the position it had.
 */
import { EVENT_TYPES, follow, type Connect, type Stream, type StreamOptions } from './core.js';

export type { Stream, StreamEvent, StreamOptions } from './core.js';

const connect: Connect = (url, cursor, { onMessage, onBreak, onEnd }) => {
  const query = cursor && `${url.includes('?') ? '&' : '?'}last_event_id=${encodeURIComponent(cursor)}`;
  const source = new EventSource(url + query);
  for (const type of EVENT_TYPES)
    source.addEventListener(type, ({ data, lastEventId }: MessageEvent<string>) => onMessage(type, data, lastEventId));
  source.onerror = () => (source.readyState === EventSource.CLOSED ? onEnd() : onBreak());
  return source;
};

/** Opens a stream, which stays until it is closed, or may not be opened again. */
export const openStream = (options: StreamOptions): Stream => follow(connect, options);
