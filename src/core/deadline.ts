import { performance } from 'node:perf_hooks';

/** One call that is waited for. */
export interface Pending {
  due: number;
  done: boolean;
  extended: boolean;
  readonly onLate: () => void;
}

/**
 * Deadlines of calls that all have the same time allowed: a queue in order of time, watched by one timer that runs only
 * while something is waited for. A timer per call would be the most expensive part of a decision.
 *
 * A busy process is not a dead store. Replies that already wait in the socket are read before a call counts as late (the
 * check comes one `setImmediate` after the timer), and where the timer itself came late, because something blocked the
 * event loop, the calls under way get their time once more: their request may not even have left.
 */
export class Deadlines {
  readonly #timeoutMs: number;
  readonly #tickMs: number;
  #queue: Pending[] = [];
  #head = 0;
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
    this.#queue.push(pending);
    if (!this.#running) this.#arm(now);
    return pending;
  }

  #arm(now: number): void {
    this.#running = true;
    this.#tickDue = now + this.#tickMs;
    // One timer for the life of the queue, never one per call.
    if (this.#timer === undefined) this.#timer = setTimeout(this.#tick, this.#tickMs).unref();
    else this.#timer.refresh();
  }

  readonly #tick = (): void => {
    const lateness = performance.now() - this.#tickDue;
    setImmediate(this.#check, lateness);
  };

  readonly #check = (lateness: number): void => {
    const now = performance.now();
    const loopWasBlocked = lateness > this.#tickMs;
    const extended: Pending[] = [];
    for (let next = this.#queue[this.#head]; next !== undefined; next = this.#queue[this.#head]) {
      if (!next.done && next.due > now) break;
      this.#head += 1;
      if (next.done) continue;
      if (loopWasBlocked && !next.extended) {
        next.extended = true;
        next.due = now + this.#timeoutMs;
        extended.push(next);
      } else {
        next.done = true;
        next.onLate();
      }
    }
    // The extended ones are due last of all: the queue stays in order of time.
    this.#queue = this.#queue.slice(this.#head);
    this.#queue.push(...extended);
    this.#head = 0;
    if (this.#queue.length > 0) this.#arm(now);
    else this.#running = false;
  };
}
