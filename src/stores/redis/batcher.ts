import type { Batch } from '../../core/operation.js';
import type { BatchResult } from '../../core/store.js';

/** More decisions than this keep the server busy for others, and the caller gains nothing. */
export const MOST_PER_CALL = 128;

/** A decision under way. */
export interface Waiting {
  readonly items: Batch;
  /** What the caller gave as time to wait: calls with another are not mixed, since a call expires as a whole. */
  readonly deadlineMs: number | undefined;
  /** Does it more than ask: unblock, forgive, charge…? */
  readonly isEffect: boolean;
  /** See `DenyCache.epoch`. */
  readonly epoch: number;
  readonly resolve: (result: BatchResult) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Collects the decisions of one tick, so that they travel in one call: a request costs its share of one command instead of a
 * command. Sent at the end of the event loop's turn, after all that this turn read from sockets.
 */
export class Batcher {
  readonly #send: (batch: readonly Waiting[]) => void;
  #waiting: Waiting[] = [];
  #scheduled = false;

  constructor(send: (batch: readonly Waiting[]) => void) {
    this.#send = send;
  }

  add(waiting: Waiting): void {
    const [first] = this.#waiting;
    if (first !== undefined && first.deadlineMs !== waiting.deadlineMs) this.#flush();
    if (this.#waiting.push(waiting) >= MOST_PER_CALL) this.#flush();
    else if (!this.#scheduled) {
      this.#scheduled = true;
      setImmediate(this.#turnOver);
    }
  }

  readonly #turnOver = (): void => {
    this.#scheduled = false;
    this.#flush();
  };

  #flush(): void {
    const batch = this.#waiting;
    if (batch.length === 0) return;
    this.#waiting = [];
    this.#send(batch);
  }
}
