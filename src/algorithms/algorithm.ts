/**
 * The numbers of a rule that an algorithm computes with. `core/rule.ts` makes them and proves their bounds, above all
 * `capacity × windowMs ≤ 2^52`: every quantity below is then a whole number that a double holds exactly.
 */
export interface AlgorithmRule {
  /** Units a window; for a bucket, the units that leak out in one window. */
  readonly limit: number;
  /** Length of the window in milliseconds. */
  readonly windowMs: number;
  /** The most units that fit at once: `burst` for the buckets, `limit` otherwise. */
  readonly capacity: number;
  /** Where a fixed window starts: at its first unit, or at a multiple of the window since 1970. */
  readonly align: 'first-hit' | 'epoch';
}

/** The state of one counter: a small tuple of whole numbers, whose meaning is the algorithm's own. It survives JSON. */
export type CounterState = readonly number[];

/**
 * One way to count. All functions are pure; `undefined` is the counter that nobody has used yet.
 *
 * Amounts called *scaled* are units × `windowMs`, so that fractions of a unit stay whole numbers: no tolerance is needed
 * anywhere. `now` may lie before times in the state (a clock that was set back): such a state counts in full.
 */
export interface Algorithm {
  /** Scaled units in the counter at `now`. */
  used(state: CounterState | undefined, rule: AlgorithmRule, now: number): number;
  /** The counter after `units` (whole, ≥ 1) were added at `now`. The caller has checked that they fit. */
  add(state: CounterState | undefined, rule: AlgorithmRule, now: number, units: number): CounterState;
  /** The counter after up to `units` that were added at time `at` were given back at `now`. */
  refund(state: CounterState, rule: AlgorithmRule, now: number, at: number, units: number): CounterState;
  /**
   * The smallest whole number of milliseconds after which at most `target` (whole, ≥ 0) units are used, if nothing else
   * happens. With target 0: the time after which the counter may be forgotten.
   */
  waitFor(state: CounterState, rule: AlgorithmRule, now: number, target: number): number;
}

/**
 * `floor(a / b)` for whole a ≥ 0, b > 0 up to 2^53, exactly. Nothing is rounded on the way, so there is nothing to prove;
 * `Math.floor(a / b)`, whose quotient is, happens to agree there.
 */
export function floorDiv(a: number, b: number): number {
  return (a - (a % b)) / b;
}

/** `ceil(a / b)`, exact in the same sense as {@link floorDiv}. */
export function ceilDiv(a: number, b: number): number {
  const rest = a % b;
  return rest === 0 ? a / b : (a - rest) / b + 1;
}
