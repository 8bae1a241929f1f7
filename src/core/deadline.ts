import type { AsyncResource } from 'node:async_hooks';
import { nodeAsyncHooks } from './builtin.js';
import { Flying, InFlight } from './in-flight.js';

/** One call that is waited for: the base of its class. {@link Deadlines} keeps these fields. */
export class Pending extends Flying {
  /** Time of `performance.now()` from which it is late. */
  due = 0;
  extended = false;
}

/**
 * Deadlines of calls that all have the same time allowed, watched by one timer that runs only while something is waited
 * for. A timer per call would be the most expensive part of a decision. What was answered is let go at once, so that a call
 * and all that hangs on it never outlive their request.
 *
 * A busy process is not a dead store. Replies that already wait in the socket are read before a call counts as late: it
 * must have been due when the timer fired, and the check comes one `setImmediate` after that. And where something blocked
 * the event loop, the calls under way get their time once more: their request may not even have left.
 */
export class Deadlines<T extends Pending> {
  readonly #timeoutMs: number;
  readonly #tickMs: number;
  readonly #onLate: (call: T) => void;
  readonly #pending = new InFlight<T>();
  /** A timer keeps the context that it was made in: this one, and not for ever that of the first request. */
  readonly #home: AsyncResource;
  #timer: NodeJS.Timeout | undefined;
  #running = false;
  #tickDue = 0;

  /** @param onLate called once for a call that was not answered in time. */
  constructor(timeoutMs: number, onLate: (call: T) => void) {
    this.#timeoutMs = timeoutMs;
    this.#onLate = onLate;
    this.#home = new (nodeAsyncHooks().AsyncResource)('limitkeeper.deadlines');
    // An eighth: a call is found late at most that much after its deadline.
    this.#tickMs = Math.max(1, Math.floor(timeoutMs / 8));
  }

  /** @param now of `performance.now()` */
  watch(call: T, now: number): void {
    call.due = now + this.#timeoutMs;
    this.#pending.add(call);
    if (!this.#running) this.#arm(now);
  }

  /** An answer came. @returns false when the call had been found late: the answer is to be thrown away. */
  answered(call: T): boolean {
    return this.#pending.remove(call);
  }

  #arm(now: number): void {
    this.#running = true;
    this.#tickDue = now + this.#tickMs;
    // One timer for good, never one per call.
    if (this.#timer === undefined) this.#home.runInAsyncScope(this.#start);
    else this.#timer.refresh();
  }

  readonly #start = (): void => {
    this.#timer = setTimeout(this.#tick, this.#tickMs).unref();
  };

  readonly #tick = (): void => {
    setImmediate(this.#check, performance.now());
  };

  readonly #check = (firedAt: number): void => {
    const now = performance.now();
    // The timer came late, or something took long between it and this check.
    const loopWasBlocked = now - this.#tickDue > this.#tickMs;
    const late = this.#pending.take(call => {
      if (call.due > now) return false;
      if (!loopWasBlocked || call.extended) return call.due <= firedAt;
      call.extended = true;
      call.due = now + this.#timeoutMs;
      return false;
    });
    late.forEach(this.#onLate);
    if (this.#pending.size > 0) this.#arm(now);
    else this.#running = false;
  };
}
