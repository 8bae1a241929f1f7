import type { AlgorithmName } from '../../src/algorithms/index.js';
import type { Rule } from '../../src/core/rule.js';

/** The last column of the algorithms table: units consumed in any span of W, net of refunds, at most. */
export const BOUNDS: Record<AlgorithmName, (rule: Rule) => number> = {
  'fixed-window': ({ limit }) => 2 * limit,
  'sliding-window': ({ limit }) => Math.max(limit, 2 * limit - 2),
  'sliding-log': ({ limit }) => limit,
  'token-bucket': ({ capacity, limit }) => capacity + limit,
  'leaky-bucket': ({ capacity, limit }) => capacity + limit,
};

/** The most units, given by their time, in any span [t, t + W). The fullest span begins with a unit. */
export function fullestSpan(units: ReadonlyMap<number, number>, windowMs: number): number {
  let most = 0;
  for (const start of units.keys()) {
    let sum = 0;
    for (const [at, n] of units) if (at >= start && at < start + windowMs) sum += n;
    most = Math.max(most, sum);
  }
  return most;
}
