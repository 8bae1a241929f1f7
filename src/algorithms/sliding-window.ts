import { floorDiv } from './algorithm.js';
import type { Algorithm, AlgorithmRule, CounterState } from './algorithm.js';

/**
 * `[start, current, previous]`: the window before the current one counts by the share of it that a window ending now
 * would still cover, `previous × (W − elapsed) / W + current`.
 *
 * At most max(L, 2L − 2) units pass in any span of W; the worst case needs the previous window's units to lie at its very
 * start, so that in practice it stays close to L.
 */
interface Windows {
  readonly start: number;
  readonly current: number;
  readonly previous: number;
  /** Milliseconds into the current window; 0 where the clock was set back to before its start. */
  readonly elapsed: number;
}

/** The windows as they stand at `now`, or `undefined` when both are over. */
function roll(state: CounterState | undefined, rule: AlgorithmRule, now: number): Windows | undefined {
  if (state === undefined) return undefined;
  const [start = 0, current = 0, previous = 0] = state;
  const elapsed = now - start;
  if (elapsed < rule.windowMs) return { start, current, previous, elapsed: Math.max(0, elapsed) };
  if (elapsed >= 2 * rule.windowMs) return undefined;
  return { start: start + rule.windowMs, current: 0, previous: current, elapsed: elapsed - rule.windowMs };
}

export const slidingWindow: Algorithm = {
  used(state, rule, now) {
    const w = roll(state, rule, now);
    return w === undefined ? 0 : w.previous * (rule.windowMs - w.elapsed) + w.current * rule.windowMs;
  },

  add(state, rule, now, units) {
    const w = roll(state, rule, now);
    if (w === undefined || (w.current === 0 && w.previous === 0)) return [now, units, 0];
    return [w.start, w.current + units, w.previous];
  },

  refund(state, rule, now, at, units) {
    const w = roll(state, rule, now);
    if (w === undefined) return state;
    if (at >= w.start && at < w.start + rule.windowMs) {
      return [w.start, Math.max(0, w.current - units), w.previous];
    }
    if (at < w.start && at >= w.start - rule.windowMs) {
      return [w.start, w.current, Math.max(0, w.previous - units)];
    }
    return state;
  },

  waitFor(state, rule, now, target) {
    const w = roll(state, rule, now);
    if (w === undefined) return 0;
    const window = rule.windowMs;
    const allowed = target * window;
    if (w.previous * (window - w.elapsed) + w.current * window <= allowed) return 0;
    // Within this window only the previous one fades: previous × (W − elapsed) ≤ (target − current) × W.
    if (w.current <= target) {
      return w.start + window - floorDiv(allowed - w.current * window, w.previous) - now;
    }
    // The current units alone are too many: they must become the previous window and fade there.
    return w.start + 2 * window - floorDiv(allowed, w.current) - now;
  },
};
