/** How late by the server's clock a call may run beyond its deadline and still count: clocks are read across a network. */
const TOLERANCE_MS = 1000;
/** Nodes come and go; a cluster has at most a thousand. */
const MAX_NODES = 1000;

/**
 * What the clock of each server shows, learnt from the times in its replies. A call carries the server's time from which it
 * must count nothing any more: a server that was frozen runs what waited in its socket when it thaws, and the callers are
 * long gone by then.
 *
 * Kept per node is the distance between its clock and this process's monotonic one. A reply proves bounds of it: the server
 * read its clock after the call was sent and before the reply came. The kept value moves only when a reply contradicts it,
 * so that one slow reply does not spoil it, and a clock that was set is followed at once.
 */
export class ServerClock {
  readonly #offsets = new Map<string, number>();

  /** @param time the server's, whole ms; `sent` and `received` of `performance.now()`. */
  learn(node: string, time: number, sent: number, received: number): void {
    const [least, most] = [time - received, time + 1 - sent];
    const known = this.#offsets.get(node);
    if (known === undefined && this.#offsets.size >= MAX_NODES) this.#offsets.clear();
    if (known === undefined || known > most) this.#offsets.set(node, most);
    else if (known < least) this.#offsets.set(node, least);
  }

  /** The server's time after which a call that expires then counts nothing; 0: not known, or never. */
  notAfter(node: string | undefined, expires: number): number {
    const offset = node === undefined ? undefined : this.#offsets.get(node);
    return offset === undefined || expires === Infinity ? 0 : Math.ceil(expires + offset + TOLERANCE_MS);
  }
}
