import type { Check } from '../../core/check.js';

/** More decisions than this keep the server busy for others, and the caller gains nothing. */
export const MOST_PER_CALL = 128;

/** A decision under way. */
export class Waiting {
  readonly checks: readonly Check[];
  /** What the caller gave as time to wait: calls with another are not mixed, since a call expires as a whole. */
  readonly deadlineMs: number | undefined;
  /** Does it more than ask: unblock, forgive, charge…? */
  readonly isEffect: boolean;
  /** See `DenyCache.epoch`. */
  readonly epoch: number;
  readonly resolve: (at: number) => void;
  readonly reject: (error: unknown) => void;

  constructor(
    checks: readonly Check[],
    deadlineMs: number | undefined,
    isEffect: boolean,
    epoch: number,
    resolve: (at: number) => void,
    reject: (error: unknown) => void,
  ) {
    this.checks = checks;
    this.deadlineMs = deadlineMs;
    this.isEffect = isEffect;
    this.epoch = epoch;
    this.resolve = resolve;
    this.reject = reject;
  }
}

/** A promise that is there: what is to happen at the end of the tick waits for it. */
const endOfTick = Promise.resolve();

/**
 * Collects the decisions of one tick, so that they travel in one call: a request costs its share of one command instead of a
 * command.
 *
 * A busy process sends at the end of the event loop's turn, after all that this turn read from sockets. A quiet one, whose
 * last call took one decision and is answered, sends at the end of the tick: whoever waits for one decision after the other
 * does not pay for the rest of the turn each time.
 */
export class Batcher {
  readonly #send: (batch: readonly Waiting[]) => void;
  readonly #isIdle: () => boolean;
  #waiting: Waiting[] = [];
  #scheduled = false;
  #lastTook = 1;

  /** @param isIdle no call is under way */
  constructor(send: (batch: readonly Waiting[]) => void, isIdle: () => boolean) {
    this.#send = send;
    this.#isIdle = isIdle;
  }

  add(waiting: Waiting): void {
    const [first] = this.#waiting;
    if (first !== undefined && first.deadlineMs !== waiting.deadlineMs) this.#flush();
    if (this.#waiting.push(waiting) >= MOST_PER_CALL) this.#flush();
    else if (!this.#scheduled) this.#schedule();
  }

  #schedule(): void {
    this.#scheduled = true;
    if (this.#lastTook === 1 && this.#isIdle()) void endOfTick.then(this.#sendAll);
    else setImmediate(this.#sendAll);
  }

  readonly #sendAll = (): void => {
    this.#scheduled = false;
    this.#flush();
  };

  #flush(): void {
    const batch = this.#waiting;
    if (batch.length === 0) return;
    this.#waiting = [];
    this.#lastTook = batch.length;
    this.#send(batch);
  }
}
