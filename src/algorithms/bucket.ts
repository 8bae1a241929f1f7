import { ceilDiv } from './algorithm.js';
import type { Algorithm, AlgorithmRule, CounterState } from './algorithm.js';

/**
 * `[level, at]`: the scaled units in the bucket at time `at`; limit / window of them leak out each millisecond. One
 * implementation for both buckets: they differ in their default burst only (the leaky one is GCRA: burst 1 means even
 * spacing). At most burst + L units pass in any span of W.
 *
 * Scaled by W, a millisecond leaks exactly `limit`: all whole numbers.
 */
function level(state: CounterState | undefined, rule: AlgorithmRule, now: number): number {
  if (state === undefined) return 0;
  const [stored = 0, at = 0] = state;
  // The product may exceed 2^53 and be rounded; by then it is far above any level, and the maximum is 0 all the same.
  return Math.max(0, stored - Math.max(0, now - at) * rule.limit);
}

export const bucket: Algorithm = {
  used: level,

  add(state, rule, now, units) {
    // A clock that steps back and forth must not leak the same millisecond twice: `at` never decreases.
    const at = state === undefined ? now : Math.max(now, state[1] ?? 0);
    return [level(state, rule, now) + units * rule.windowMs, at];
  },

  refund(state, rule, now, at, units) {
    // What has leaked since is not there to give back.
    const left = Math.max(0, units * rule.windowMs - Math.max(0, now - at) * rule.limit);
    return [Math.max(0, level(state, rule, now) - left), Math.max(now, state[1] ?? 0)];
  },

  waitFor(state, rule, now, target) {
    const [stored = 0, at = 0] = state;
    const over = stored - target * rule.windowMs;
    if (over <= 0) return 0;
    // Durations first: `at` plus the wait of the longest debt, 2^53 ms, would be rounded.
    return Math.max(0, ceilDiv(over, rule.limit) - (now - at));
  },
};
