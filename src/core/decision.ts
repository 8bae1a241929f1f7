import type { Plan } from './rule.js';

/**
 * Why: `ok` passes; `blocked`: a block stands; `cost`: more than the capacity, can never pass; `limit`: the units used
 * leave too little; `held`: only reservations stand in the way.
 */
export type Reason = 'ok' | 'blocked' | 'cost' | 'limit' | 'held';

/** The answer of one rule, read after the operation took effect, for the rule's own cost. Plain data. */
export interface Reading {
  readonly scope: string;
  readonly allowed: boolean;
  readonly reason: Reason;
  /** The capacity: `burst` for the buckets, `limit` otherwise. */
  readonly limit: number;
  /** The largest whole cost that would pass now, e.g. 3 of a limit of 5 after two requests; 0 if none, or blocked. */
  readonly remaining: number;
  /**
   * 0 when ok; else the smallest wait in ms after which the same cost would pass if nothing else happened: 30,000 when
   * the window frees in half a minute. `null`: never.
   */
  readonly retryAfterMs: number | null;
  /** The wait in ms until a cost of `remaining + 1` would pass; 0 when nothing is used; `null`: never. */
  readonly moreAfterMs: number | null;
  /** The wait in ms until nothing is used or held and no block stands; `null`: never. */
  readonly resetAfterMs: number | null;
}

/** A reading with what a client is told of its rule. */
export interface RuleReading extends Reading {
  /** The length of the window in ms; for a bucket whose burst is not its limit, the time to refill it. */
  readonly windowMs: number;
  /** Computed and reported, but never refuses. */
  readonly shadow: boolean;
}

/** What was taken by one consume or reserve. Plain data that survives JSON; spend it once, with the same subject. */
export interface Receipt {
  readonly id: string;
  readonly kind: 'consume' | 'reserve';
  /** The store's time of the decision, Unix ms. */
  readonly at: number;
  /** The rules charged, with their costs and, so that a changed plan finds the same counter, their numbers. */
  readonly rules: readonly ReceiptEntry[];
  /** The process's own memory store decided (`failMode: 'local'`): only there it can be given back. */
  readonly local?: true;
}

export interface ReceiptEntry {
  readonly scope: string;
  readonly cost: number;
  readonly plan: Plan;
}

/**
 * The readings of one call folded: allowed when every enforced rule is. The flat fields are those of the binding reading:
 * when refused, of the refusing rule with the longest wait; when allowed, of the rule with the fewest remaining. They are
 * `null` where no enforced rule took part, or where the store failed and nobody counted.
 */
export interface Decision {
  readonly allowed: boolean;
  /** `unavailable`: the store failed and `failMode` is `closed`. */
  readonly reason: Reason | 'unavailable';
  readonly scope: string | null;
  readonly limit: number | null;
  readonly remaining: number | null;
  readonly retryAfterMs: number | null;
  readonly moreAfterMs: number | null;
  readonly resetAfterMs: number | null;
  /** The store's time of the decision, Unix ms; where the store failed, the process's. */
  readonly at: number;
  /** One per rule that took part, in order. Empty where the store failed and nobody counted. */
  readonly readings: readonly RuleReading[];
  /** Handed out by an allowed consume or reserve that charged a rule. */
  readonly receipt?: Receipt;
  /** The store failed; which fail mode answered in its place. */
  readonly degraded?: 'open' | 'closed' | 'local';
}

/** The reading that the flat fields of a decision are those of; `undefined` where no enforced rule took part. */
export function bindingOf<R extends RuleReading>(readings: readonly R[]): R | undefined {
  let binding: R | undefined;
  for (const reading of readings) {
    if (!reading.shadow && (binding === undefined || bindsTighter(reading, binding))) binding = reading;
  }
  return binding;
}

/** Written out and not spread, which costs several times as much: it may be made for every request. */
export function fold(readings: readonly RuleReading[], at: number): Decision {
  const binding = bindingOf(readings);
  if (binding === undefined) return { ...unlimited(at), readings };
  const { allowed, reason, scope, limit, remaining, retryAfterMs, moreAfterMs, resetAfterMs } = binding;
  return { allowed, reason, scope, limit, remaining, retryAfterMs, moreAfterMs, resetAfterMs, at, readings };
}

/** Refusing before allowing; then the longest wait, or the fewest remaining. Ties stay with the first. */
function bindsTighter(a: RuleReading, b: RuleReading): boolean {
  if (a.allowed !== b.allowed) return !a.allowed;
  if (a.allowed) return a.remaining < b.remaining;
  return (a.retryAfterMs ?? Infinity) > (b.retryAfterMs ?? Infinity);
}

/** No enforced rule took part: allowed, and there is nothing to tell. */
export function unlimited(at: number): Decision {
  return {
    allowed: true,
    reason: 'ok',
    scope: null,
    limit: null,
    remaining: null,
    retryAfterMs: 0,
    moreAfterMs: null,
    resetAfterMs: null,
    at,
    readings: [],
  };
}
