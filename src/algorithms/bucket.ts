import { ceilDiv, NONE } from './algorithm.js';
import type { Algorithm, AlgorithmRule, Registers } from './algorithm.js';

/**
 * `a`: the scaled units in the bucket at time `b`; limit / window of them leak out each millisecond. One implementation for
 * both buckets: they differ in their default burst only (the leaky one is GCRA: burst 1 means even spacing). At most
 * burst + L units pass in any span of W.
 *
 * Scaled by W, a millisecond leaks exactly `limit`: all whole numbers.
 */
function level({ a, b }: Registers, rule: AlgorithmRule, now: number): number {
  // The product may exceed 2^53 and be rounded; by then it is far above any level, and the maximum is 0 all the same.
  return now > b ? Math.max(0, a - (now - b) * rule.limit) : a;
}

export const bucket: Algorithm = {
  used: level,

  add(registers, rule, now, units) {
    const isNew = registers.a === NONE;
    registers.a = (isNew ? 0 : level(registers, rule, now)) + units * rule.windowMs;
    // A clock that steps back and forth must not leak the same millisecond twice: `b` never decreases.
    if (isNew || now > registers.b) registers.b = now;
  },

  refund(registers, rule, now, at, units) {
    // What has leaked since is not there to give back.
    const left = Math.max(0, units * rule.windowMs - Math.max(0, now - at) * rule.limit);
    registers.a = Math.max(0, level(registers, rule, now) - left);
    registers.b = Math.max(now, registers.b);
  },

  waitFor(registers, rule, now, target) {
    // Durations first: `b` plus the wait of the longest debt, 2^53 ms, would be rounded.
    return Math.max(0, ceilDiv(registers.a - target * rule.windowMs, rule.limit) - (now - registers.b));
  },

  load(registers, [units = 0, at = 0]) {
    registers.a = units;
    registers.b = at;
  },

  save: ({ a, b }) => [a, b],
};
