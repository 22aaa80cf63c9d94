/** An EventSource that does what the test says. */
export class FakeEventSource extends EventTarget {
  static readonly CONNECTING = 0;
  static readonly OPEN = 1;
  static readonly CLOSED = 2;
  static made: FakeEventSource[] = [];

  readyState: number = FakeEventSource.CONNECTING;
  onerror: (() => void) | undefined;

  constructor(readonly url: string) {
    super();
    FakeEventSource.made.push(this);
  }

  /** The one that was opened last. */
  static get last(): FakeEventSource {
    const last = FakeEventSource.made.at(-1);
    if (!last) throw new Error('no stream was opened');
    return last;
  }

  emit(type: string, lastEventId: string, data: unknown = {}): void {
    this.readyState = FakeEventSource.OPEN;
    this.dispatchEvent(new MessageEvent(type, { data: JSON.stringify(data), lastEventId }));
  }

  /** Fails: for a while, as after a broken connection, or for good, as after a 503. */
  fail(forGood: boolean): void {
    this.readyState = forGood ? FakeEventSource.CLOSED : FakeEventSource.CONNECTING;
    this.onerror?.();
  }

  close(): void {
    this.readyState = FakeEventSource.CLOSED;
  }
}
