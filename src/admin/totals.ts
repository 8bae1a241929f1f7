/** What became of the requests of one scope in this process, since the router was made. */
export interface Totals {
  /** Passed this rule in a request that went on. */
  allowed: number;
  /** Refused by this rule. */
  refused: number;
  /** Would have been refused, were the rule not in shadow mode. */
  shadowRefused: number;
  /** Automatic blocks that started. */
  blocked: number;
  /** Calls of this rule's limiter that the store did not answer; its fail mode did. */
  storeErrors: number;
}

/** Seconds that one number of the recent past stands for, and how many are kept: five minutes. */
export const STEP_SEC = 2;
export const STEPS = 150;

/** The recent past of one scope, oldest first; the last number is of the step under way. */
export interface Recent {
  readonly allowed: readonly number[];
  readonly refused: readonly number[];
}

/**
 * Totals of one scope, and its last five minutes in steps of two seconds, in rings of fixed size. Times are those of a
 * monotonic clock (`performance.now()`).
 */
export class ScopeCounts {
  readonly totals: Totals = { allowed: 0, refused: 0, shadowRefused: 0, blocked: 0, storeErrors: 0 };
  readonly #allowed = new Float64Array(STEPS);
  readonly #refused = new Float64Array(STEPS);
  /** The step that was counted in last. */
  #last = 0;

  allowed(nowMs: number): void {
    this.totals.allowed += 1;
    this.#add(this.#allowed, nowMs);
  }

  refused(nowMs: number): void {
    this.totals.refused += 1;
    this.#add(this.#refused, nowMs);
  }

  /** Shown among the refused ones: that is what the rule would do. */
  shadowRefused(nowMs: number): void {
    this.totals.shadowRefused += 1;
    this.#add(this.#refused, nowMs);
  }

  recent(nowMs: number): Recent {
    const step = this.#advance(nowMs);
    const inOrder = (ring: Float64Array): number[] =>
      Array.from({ length: STEPS }, (_, i) => ring[(step + 1 + i) % STEPS] ?? 0);
    return { allowed: inOrder(this.#allowed), refused: inOrder(this.#refused) };
  }

  #add(ring: Float64Array, nowMs: number): void {
    const i = this.#advance(nowMs) % STEPS;
    ring[i] = (ring[i] ?? 0) + 1;
  }

  /** Empties the steps that nobody counted in. */
  #advance(nowMs: number): number {
    const step = Math.floor(nowMs / (STEP_SEC * 1000));
    const from = Math.max(this.#last + 1, step - STEPS + 1);
    for (let i = from; i <= step; i += 1) {
      this.#allowed[i % STEPS] = 0;
      this.#refused[i % STEPS] = 0;
    }
    this.#last = step;
    return step;
  }
}
