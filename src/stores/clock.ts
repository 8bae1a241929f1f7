import type { Clock } from '../core/clock.js';
import { rangeError, received, typeError } from '../core/errors.js';

/** The clock of a store's options. */
export function checkClock(clock: unknown): Clock {
  if (typeof clock === 'object' && clock !== null && 'now' in clock && typeof clock.now === 'function') {
    return clock as Clock;
  }
  throw typeError(
    'ERR_LIMITKEEPER_OPTION_TYPE',
    `clock must have a method now() that tells Unix milliseconds, got ${received(clock)}.`,
    { option: 'clock' },
  );
}

/** The time by a clock that somebody else may have written. */
export function readClock(clock: Clock): number {
  const now = clock.now();
  if (Number.isSafeInteger(now) && now >= 0) return now;
  throw rangeError(
    'ERR_LIMITKEEPER_OPTION_RANGE',
    `clock.now() must return whole milliseconds ≥ 0, got ${received(now)}. Round what your clock tells.`,
    { option: 'clock' },
  );
}
