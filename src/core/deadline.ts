/** One call that is waited for. */
export interface Pending {
  due: number;
  done: boolean;
  extended: boolean;
  readonly onLate: () => void;
}

/**
 * Deadlines of calls that all have the same time allowed, watched by one timer that runs only while something is waited
 * for. A timer per call would be the most expensive part of a decision.
 *
 * A busy process is not a dead store. Replies that already wait in the socket are read before a call counts as late: it
 * must have been due when the timer fired, and the check comes one `setImmediate` after that. And where something blocked
 * the event loop, the calls under way get their time once more: their request may not even have left.
 */
export class Deadlines {
  readonly #timeoutMs: number;
  readonly #tickMs: number;
  #pending: Pending[] = [];
  #timer: NodeJS.Timeout | undefined;
  #running = false;
  #tickDue = 0;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    // An eighth: a call is found late at most that much after its deadline.
    this.#tickMs = Math.max(1, Math.floor(timeoutMs / 8));
  }

  /** Calls `onLate` once, unless `done` was set by then. */
  watch(onLate: () => void): Pending {
    const now = performance.now();
    const pending: Pending = { due: now + this.#timeoutMs, done: false, extended: false, onLate };
    this.#pending.push(pending);
    if (!this.#running) this.#arm(now);
    return pending;
  }

  #arm(now: number): void {
    this.#running = true;
    this.#tickDue = now + this.#tickMs;
    // One timer for good, never one per call.
    if (this.#timer === undefined) this.#timer = setTimeout(this.#tick, this.#tickMs).unref();
    else this.#timer.refresh();
  }

  readonly #tick = (): void => {
    setImmediate(this.#check, performance.now());
  };

  readonly #check = (firedAt: number): void => {
    const now = performance.now();
    // The timer came late, or something took long between it and this check.
    const loopWasBlocked = now - this.#tickDue > this.#tickMs;
    for (const call of this.#pending) {
      if (call.done || call.due > now) continue;
      if (loopWasBlocked && !call.extended) {
        call.extended = true;
        call.due = now + this.#timeoutMs;
      } else if (call.due <= firedAt) {
        call.done = true;
        call.onLate();
      }
    }
    this.#pending = this.#pending.filter(({ done }) => !done);
    if (this.#pending.length > 0) this.#arm(now);
    else this.#running = false;
  };
}
