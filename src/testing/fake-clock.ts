import type { Clock } from '../core/clock.js';
import { rangeError, received } from '../core/errors.js';

/**
 * A clock that stands still until it is told otherwise.
 *
 * @example
 * const clock = new FakeClock(Date.UTC(2026, 0, 1));
 * const limiter = createLimiter({ scope: 'mail', limit: 1, windowSec: 60, store: new MemoryStore({ clock }) });
 * await limiter.consume('alice'); // allowed
 * await limiter.consume('alice'); // refused
 * clock.advance(60_000 * 2);
 * await limiter.consume('alice'); // allowed
 */
export class FakeClock implements Clock {
  #now: number;

  /** @param startMs Unix time in whole milliseconds. */
  constructor(startMs: number) {
    this.#now = time(startMs, 'startMs', ' Write e.g. new FakeClock(Date.UTC(2026, 0, 1)).');
  }

  now(): number {
    return this.#now;
  }

  /** Goes on by `ms`; a negative number steps back, as a clock that is set right does. */
  advance(ms: number): void {
    this.#now = time(this.#now + ms, 'the time after advance()');
  }

  /** Goes to `ms`, later or earlier. */
  set(ms: number): void {
    this.#now = time(ms, 'ms');
  }
}

function time(ms: number, what: string, advice = ''): number {
  if (Number.isSafeInteger(ms) && ms >= 0) return ms;
  throw rangeError(
    'ERR_LIMITKEEPER_OPTION_RANGE',
    `${what} must be whole milliseconds ≥ 0, got ${received(ms)}.${advice}`,
    { option: 'clock' },
  );
}
