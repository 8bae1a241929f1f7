import { usedIn } from '../algorithms/index.js';
import { heldUnits } from '../core/cell.js';
import type { Cell, Counter } from '../core/cell.js';
import { isStanding } from '../core/block.js';
import { Check } from '../core/check.js';
import { decideCells } from '../core/decide-cells.js';
import type { Reading } from '../core/decision.js';
import type { LimiterEntry } from '../core/limiter-options.js';
import { subjectOfHash } from '../core/subject.js';
import type { Rule } from '../core/rule.js';

/** A block as it is shown; `until: null` is for ever. Times are Unix ms. */
export interface ShownBlock {
  readonly since: number;
  readonly until: number | null;
  readonly manual: boolean;
}

export interface ShownCounter {
  readonly algorithm: Counter['algorithm'];
  readonly windowSec: number;
  /** Units, to three decimals. `null` where only a plan says how fast the bucket leaks. */
  readonly used: number | null;
  readonly held: number;
}

export interface ShownCell {
  readonly block: ShownBlock | null;
  /** Blocks of a ladder so far that still count. */
  readonly strikes: number;
  readonly counters: readonly ShownCounter[];
}

/** What a cell says to a person. `own`: the rule as it is now, unless it lives by plans. */
export function showCell(cell: Cell | undefined, own: Rule | undefined, now: number): ShownCell {
  const { block, counters = [] } = cell ?? {};
  return {
    block: isStanding(block, now) ? { since: block.since, until: block.until, manual: block.manual } : null,
    strikes: block?.strikes ?? 0,
    counters: counters.map(counter => showCounter(counter, own, now)),
  };
}

/** What would become of a request of the rule's own cost, were the block lifted now. */
export type WithoutBlock = Pick<Reading, 'allowed' | 'reason' | 'remaining' | 'retryAfterMs'>;

/**
 * Whether lifting a block would let its subject in, or whether the counter is used up as well. `null` where no block stands,
 * or where the numbers of the rule come with each request.
 */
export function withoutBlock(
  cell: Cell | undefined,
  { own, cost }: LimiterEntry,
  now: number,
): WithoutBlock | null {
  if (cell === undefined || own === undefined || !isStanding(cell.block, now)) return null;
  const { v, counters } = cell;
  const check = new Check(own, subjectOfHash(''), { type: 'peek', cost });
  decideCells([check], [{ v, counters }], now);
  const { allowed, reason, remaining, retryAfterMs } = check;
  return { allowed, reason, remaining, retryAfterMs };
}

function showCounter(counter: Counter, own: Rule | undefined, now: number): ShownCounter {
  const { algorithm, windowMs, state, holds } = counter;
  const isBucket = algorithm === 'token-bucket' || algorithm === 'leaky-bucket';
  const rule = own?.algorithm === algorithm && own.windowMs === windowMs ? own : undefined;
  // Only a bucket needs to know the limit: it is its speed.
  const numbers = rule ?? { limit: 1, capacity: 1, windowMs, align: 'first-hit' as const };
  const known = !isBucket || rule !== undefined;
  return {
    algorithm,
    windowSec: windowMs / 1000,
    used: known ? round(usedIn(algorithm, state, numbers, now) / windowMs) : null,
    held: heldUnits(holds, now),
  };
}

const round = (units: number): number => Math.round(units * 1000) / 1000;
