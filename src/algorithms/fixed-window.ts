import type { Algorithm, AlgorithmRule, CounterState } from './algorithm.js';

/**
 * `[start, count]`. The window runs while `now < start + W`.
 *
 * At most 2 × limit units pass in any span of W: one limit just before a window's end, one just after.
 */
function running(state: CounterState | undefined, rule: AlgorithmRule, now: number): boolean {
  return state !== undefined && now < startOf(state) + rule.windowMs;
}

const startOf = (state: CounterState): number => state[0] ?? 0;
const countOf = (state: CounterState): number => state[1] ?? 0;

export const fixedWindow: Algorithm = {
  used(state, rule, now) {
    return state !== undefined && running(state, rule, now) ? countOf(state) * rule.windowMs : 0;
  },

  add(state, rule, now, units) {
    // A count of 0 (all refunded) is no counter: its window is over, too.
    if (state !== undefined && running(state, rule, now) && countOf(state) > 0) {
      return [startOf(state), countOf(state) + units];
    }
    return [rule.align === 'epoch' ? now - (now % rule.windowMs) : now, units];
  },

  refund(state, rule, now, at, units) {
    const start = startOf(state);
    const countedHere = at >= start && at < start + rule.windowMs;
    if (!countedHere || !running(state, rule, now)) return state;
    return [start, Math.max(0, countOf(state) - units)];
  },

  waitFor(state, rule, now, target) {
    if (!running(state, rule, now) || countOf(state) <= target) return 0;
    return startOf(state) + rule.windowMs - now;
  },
};
