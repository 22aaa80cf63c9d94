/** An event stream's parser, by WHATWG HTML §9.2.6. */

/** A line, or an event, that is longer is none of ours. */
const MAX_LENGTH = 1 << 20;

export interface Parser {
  /** Reads the next part of the stream; throws if it is none. */
  feed(text: string): void;
  /** How long the server wants the client to wait before it reconnects. */
  readonly retryMs: number | undefined;
}

/** Returns a parser that calls onMessage with every event that has data. */
export function newParser(onMessage: (type: string, data: string, lastEventId: string) => void, lastEventId = ''): Parser {
  let rest = '';
  let type = '';
  let data: string[] = [];
  let retryMs: number | undefined;
  let began = false;
  let afterCR = false;

  const line = (text: string) => {
    if (text === '') {
      if (data.length > 0) onMessage(type || 'message', data.join('\n'), lastEventId);
      type = '';
      data = [];
      return;
    }
    const colon = text.indexOf(':');
    const field = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? '' : text.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') type = value;
    else if (field === 'data') data.push(value);
    else if (field === 'id' && !value.includes('\0')) lastEventId = value;
    else if (field === 'retry' && /^\d{1,9}$/.test(value)) retryMs = Number(value);
  };

  return {
    get retryMs() {
      return retryMs;
    },
    feed(text) {
      if (text === '') return;
      if (!began) text = text.replace(/^\uFEFF/, '');
      began = true;
      // A line that ends in CR is complete: an event must not be late by one.
      if (afterCR && text.startsWith('\n')) text = text.slice(1);
      afterCR = text === '' ? false : text.endsWith('\r');
      const lines = (rest + text).split(/\r\n|\n|\r/);
      rest = lines.pop() ?? '';
      if (rest.length + data.reduce((sum, { length }) => sum + length, 0) > MAX_LENGTH) throw new Error('an event is too long');
      for (const text of lines) line(text);
    },
  };
}
