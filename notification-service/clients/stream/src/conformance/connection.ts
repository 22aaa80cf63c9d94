/** One connection to a stream, as it comes: nothing is repaired, or left out. */
import { newParser, type Parser } from '../parser.js';

/** An event as it came; the id is '' where it had none of its own. */
export interface RawEvent {
  type: string;
  data: Record<string, unknown>;
  id: string;
}

export interface Target {
  url: string;
  /** The headers that sign in. */
  headers: Record<string, string>;
  /** For how long the suite waits for what has to come, in milliseconds. */
  patienceMs: number;
}

export const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

export class Connection {
  readonly events: RawEvent[] = [];
  /** How the stream ended, once it has. */
  ended: 'cleanly' | 'broken' | undefined;
  private parser: Parser | undefined;
  private lastId = '';
  private wake = () => {};

  private constructor(
    readonly answer: Response,
    private readonly aborter: AbortController,
    private readonly patienceMs: number,
  ) {}

  static async open(target: Target, cursor = '', url = target.url, headers = target.headers): Promise<Connection> {
    const aborter = new AbortController();
    const timer = setTimeout(() => aborter.abort(), target.patienceMs);
    const answer = await fetch(url, {
      headers: { ...headers, Accept: 'text/event-stream', ...(cursor && { 'Last-Event-ID': cursor }) },
      signal: aborter.signal,
    }).finally(() => clearTimeout(timer));
    const connection = new Connection(answer, aborter, target.patienceMs);
    void connection.read();
    return connection;
  }

  /** The last value of retry. */
  get retryMs(): number | undefined {
    return this.parser?.retryMs;
  }

  /** The events of a type. */
  of(type: string): RawEvent[] {
    return this.events.filter((event) => event.type === type);
  }

  /** Returns whether the condition holds in time. */
  async until(condition: () => boolean, ms = this.patienceMs): Promise<boolean> {
    const late = pause(ms).then(() => 'late' as const);
    while (!condition()) {
      const changed = new Promise<void>((resolve) => (this.wake = resolve));
      if ((await Promise.race([changed, late])) === 'late') return condition();
    }
    return true;
  }

  close(): void {
    this.aborter.abort();
  }

  private async read(): Promise<void> {
    const parser = (this.parser = newParser((type, data, lastId) => this.add(type, data, lastId)));
    const decoder = new TextDecoder();
    try {
      const reader = this.answer.body?.getReader();
      for (;;) {
        const part = await reader?.read();
        if (!part || part.done) break;
        parser.feed(decoder.decode(part.value, { stream: true }));
        this.wake();
      }
      this.ended = 'cleanly';
    } catch {
      this.ended = 'broken';
    }
    this.wake();
  }

  private add(type: string, text: string, lastId: string): void {
    const data = JSON.parse(text) as RawEvent['data'];
    // The last id stays where an event has none, and where it is repeated.
    const repeated = this.events.some((event) => event.id === lastId && event.type === type && event.data.id === data.id);
    this.events.push({ type, data, id: lastId === this.lastId && !repeated ? '' : lastId });
    this.lastId = lastId;
  }
}
