import type { ServerResponse } from 'node:http';
import { refuse } from '../http/reply.js';
import { writeHead } from '../http/send.js';

/** One line of the live stream. Subjects appear as hashes only. `at` is Unix ms. */
export type AdminEvent = {
  readonly type:
    | 'refused'
    | 'shadow-refused'
    | 'blocked'
    | 'unblocked'
    | 'reset'
    | 'store-error'
    | 'degraded'
    | 'recovered';
  readonly at: number;
} & Readonly<Record<string, unknown>>;

/** Events travel in bundles, so that an attack costs a write now and then and not one for each refusal. */
const FLUSH_MS = 200;
/** Events in one bundle at most; the rest is only counted. */
const MOST_PENDING = 100;
const HEARTBEAT_MS = 15_000;
/** Bytes that may wait for a reader who does not keep up; beyond that they miss bundles. */
const MOST_WAITING = 64 * 1024;
const MOST_READERS = 32;

/**
 * The live stream: server-sent events (WHATWG HTML, 9.2) to every reader. Bounded in readers, in events and in bytes that
 * wait for each; what is left out is told as `event: dropped` with a count. Costs nothing while nobody reads.
 */
export class EventHub {
  /** Readers, each with the number of events that passed them by. */
  readonly #readers = new Map<ServerResponse, { missed: number }>();
  #pending: AdminEvent[] = [];
  #dropped = 0;
  #flush: NodeJS.Timeout | undefined;
  #heartbeat: NodeJS.Timeout | undefined;

  tell(event: AdminEvent): void {
    if (this.#readers.size === 0) return;
    if (this.#pending.length < MOST_PENDING) this.#pending.push(event);
    else this.#dropped += 1;
    this.#flush ??= setTimeout(() => {
      this.#send();
    }, FLUSH_MS).unref();
  }

  /**
   * Makes the response a stream, until it is closed by either side.
   *
   * @throws Refusal 503 where too many read already.
   */
  add(res: ServerResponse): void {
    if (this.#readers.size >= MOST_READERS) {
      refuse(503, `At most ${String(MOST_READERS)} streams are open at once.`, {}, { 'Retry-After': '30' });
    }
    // Gone while its key was looked at: its 'close' has been, and nobody would take it off the list.
    if (res.destroyed) return;
    writeHead(res, 200, {
      'Content-Type': 'text/event-stream',
      // Proxies and compression would hold events back until there are enough of them.
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    });
    this.#readers.set(res, { missed: 0 });
    res.once('close', () => {
      this.#remove(res);
    });
    res.write(': welcome\n\n');
    this.#heartbeat ??= setInterval(() => {
      for (const reader of [...this.#readers.keys()]) {
        // Nothing was taken off for long enough: somebody who is gone without a word holds no place.
        if (reader.writableLength > MOST_WAITING) reader.destroy();
        else reader.write(': still here\n\n');
      }
    }, HEARTBEAT_MS).unref();
  }

  /** Ends every stream. */
  end(): void {
    for (const reader of [...this.#readers.keys()]) {
      this.#remove(reader);
      reader.end();
    }
  }

  #send(): void {
    const bundle = this.#pending
      .map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
      .join('');
    for (const [reader, state] of this.#readers) {
      state.missed += this.#dropped;
      if (reader.writableLength > MOST_WAITING) {
        state.missed += this.#pending.length;
        continue;
      }
      const missed = state.missed === 0 ? '' : `event: dropped\ndata: {"count":${String(state.missed)}}\n\n`;
      state.missed = 0;
      reader.write(bundle + missed);
    }
    this.#clear();
  }

  #clear(): void {
    clearTimeout(this.#flush);
    this.#flush = undefined;
    this.#pending = [];
    this.#dropped = 0;
  }

  #remove(reader: ServerResponse): void {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return;
    clearInterval(this.#heartbeat);
    this.#heartbeat = undefined;
    this.#clear();
  }
}
