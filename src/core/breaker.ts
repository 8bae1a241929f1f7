import type { LimitkeeperError } from './errors.js';

/** After this many failures in a row the store is left alone… */
const FAILURES_TO_OPEN = 5;
/** …for this long, then one probe goes. */
export const COOL_DOWN_MS = 1000;

type State =
  | { readonly kind: 'closed'; readonly failures: number }
  | { readonly kind: 'open'; readonly until: number }
  | { readonly kind: 'probing' };

/**
 * Keeps a dead or frozen store from costing every request a deadline. Time is passed in: milliseconds of a clock that
 * never steps back.
 */
export class Breaker {
  #state: State = { kind: 'closed', failures: 0 };
  #last: LimitkeeperError | undefined;

  /** What the store last failed with, as long as it has not answered since. */
  get last(): LimitkeeperError | undefined {
    return this.#last;
  }

  /** The usual state, in which every call goes and nobody needs to ask for the time. */
  get isClosed(): boolean {
    return this.#state.kind === 'closed';
  }

  /** May a call go now? In the open state the first one after the cool-down does, as the probe. */
  allows(now: number): boolean {
    const state = this.#state;
    if (state.kind === 'closed') return true;
    if (state.kind === 'probing' || now < state.until) return false;
    this.#state = { kind: 'probing' };
    return true;
  }

  /** Any reply in time shows that the store lives, also one of a call made before the breaker opened. */
  succeeded(): void {
    if (this.#state.kind === 'closed' && this.#state.failures === 0) return;
    this.#state = { kind: 'closed', failures: 0 };
    this.#last = undefined;
  }

  /** A call that was let go needed no store in the end: where it was the probe, the next one is. */
  spared(): void {
    if (this.#state.kind === 'probing') this.#state = { kind: 'open', until: -Infinity };
  }

  failed(now: number, error: LimitkeeperError): void {
    this.#last = error;
    const state = this.#state;
    // Calls that were under way when the breaker opened fail one after another: they do not prolong the rest.
    if (state.kind === 'open') return;
    const failures = state.kind === 'closed' ? state.failures + 1 : FAILURES_TO_OPEN;
    this.#state =
      failures >= FAILURES_TO_OPEN
        ? { kind: 'open', until: now + COOL_DOWN_MS }
        : { kind: 'closed', failures };
  }
}
