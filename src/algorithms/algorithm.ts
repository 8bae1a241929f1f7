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

/**
 * One counter while it is worked on. What `a`, `b` and `c` mean is each algorithm's own; what it does not need is 0.
 * Whoever loads registers owns them: the functions below change them in place, the list included.
 */
export interface Registers {
  /** {@link NONE}: nobody has counted yet. */
  a: number;
  b: number;
  c: number;
  /** The sliding log's entries; the others leave it alone. */
  log: number[];
}

/** In register `a`: nobody has counted. Neither a time nor an amount is ever negative. */
export const NONE = -1;

/** The registers as they are stored: a small list of whole numbers, whose meaning is the algorithm's own. It survives JSON. */
export type CounterState = readonly number[];

/**
 * One way to count. Only {@link add} is asked of registers that say {@link NONE}; the others have a counter to ask.
 *
 * Amounts called *scaled* are units × `windowMs`, so that fractions of a unit stay whole numbers: no tolerance is needed
 * anywhere. `now` may lie before times in the registers (a clock that was set back): such a counter counts in full.
 */
export interface Algorithm {
  /** Scaled units in the counter at `now`. */
  used(registers: Registers, rule: AlgorithmRule, now: number): number;
  /** Adds `units` (whole, ≥ 1) at `now`, in full: {@link used} then says that much more. The caller has checked that they fit. */
  add(registers: Registers, rule: AlgorithmRule, now: number, units: number): void;
  /** Gives back, at `now`, up to `units` that were added at time `at`. */
  refund(registers: Registers, rule: AlgorithmRule, now: number, at: number, units: number): void;
  /**
   * The smallest whole number of milliseconds after which at most `target` (whole, ≥ 0) units are used, if nothing else
   * happens. Asked only where more are used now.
   */
  waitFor(registers: Registers, rule: AlgorithmRule, now: number, target: number): number;
  /** Loads registers from a stored state of this algorithm, of which they get a copy. */
  load(registers: Registers, state: CounterState): void;
  /** The registers as a state to store. */
  save(registers: Registers): CounterState;
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
