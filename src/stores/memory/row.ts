import { ceilDiv } from '../../algorithms/algorithm.js';
import { algorithms } from '../../algorithms/index.js';
import type { AlgorithmName } from '../../algorithms/index.js';
import { blockForgettableAt } from '../../core/block.js';
import { heldUnits } from '../../core/cell.js';
import type { Counter } from '../../core/cell.js';
import type { Rule } from '../../core/rule.js';
import type { Blocked } from './blocks.js';
import type { Segment } from './segment.js';
import type { Kind, Series } from './series.js';

/*
 * The three numbers of a row:
 *   fixed window    start, count, –
 *   sliding window  start, current, previous
 *   buckets         level, at, limit
 *   sliding log     time of its last entry, –, –; the log itself lies beside
 *   a block         –
 */

/** The first number where nothing is used, and only holds keep the counter. */
const NONE = -1;
const NOTHING: readonly number[] = [];

export function readCounter(segment: Segment, row: number, series: Series): Counter {
  const { windowMs } = series;
  const algorithm = series.kind as AlgorithmName;
  const { holds, state: log } = besideCounter(segment, row);
  const until = rowUntil(segment, row, series);
  const [first, second, third] = numbersOf(segment, row);
  if (first === NONE) return { algorithm, windowMs, holds, until };
  const state = log ?? (algorithm === 'sliding-window' ? [first, second, third] : [first, second]);
  return { algorithm, windowMs, state, holds, until };
}

export function writeCounter(segment: Segment, row: number, counter: Counter, rule: Rule): void {
  const { algorithm, state = NOTHING, holds } = counter;
  const isLog = algorithm === 'sliding-log' && state.length > 0;
  segment.numbers[3 * row] = (isLog ? state.at(-2) : state[0]) ?? NONE;
  segment.numbers[3 * row + 1] = state[1] ?? 0;
  segment.numbers[3 * row + 2] = (isBucket(algorithm) ? rule.limit : state[2]) ?? 0;
  segment.capacities[row] = rule.capacity;
  segment.setBeside(row, isLog ? { state, holds } : holds.length > 0 ? { holds } : undefined);
}

export function blockedAt(segment: Segment, row: number): Blocked {
  return segment.beside?.[row] as Blocked;
}

/** The time from which the row says nothing any more. */
export function rowUntil(segment: Segment, row: number, { kind, windowMs }: Series): number {
  if (kind === 'block') return blockForgettableAt(blockedAt(segment, row).block);
  const heldUntil = besideCounter(segment, row).holds.at(-2) ?? 0;
  const [first, second, third] = numbersOf(segment, row);
  if (first === NONE) return heldUntil;
  if (isBucket(kind)) return Math.max(heldUntil, second + ceilDiv(first, third));
  // What is in the current window of a sliding one fades while the next one runs.
  return Math.max(heldUntil, first + (kind === 'sliding-window' && second > 0 ? 2 : 1) * windowMs);
}

/** Used and held of a counter as a share of its capacity. */
export function rowShare(segment: Segment, row: number, series: Series, now: number): number {
  const { algorithm, windowMs, state, holds } = readCounter(segment, row, series);
  const capacity = segment.capacities[row] ?? 1;
  const rule = { limit: segment.numbers[3 * row + 2] ?? 1, windowMs, capacity, align: 'first-hit' } as const;
  return (algorithms[algorithm].used(state, rule, now) / windowMs + heldUnits(holds, now)) / capacity;
}

function besideCounter(segment: Segment, row: number): Pick<Counter, 'state' | 'holds'> {
  return (segment.beside?.[row] as Pick<Counter, 'state' | 'holds'> | undefined) ?? { holds: NOTHING };
}

function numbersOf({ numbers }: Segment, row: number): readonly [number, number, number] {
  return [numbers[3 * row] ?? NONE, numbers[3 * row + 1] ?? 0, numbers[3 * row + 2] ?? 0];
}

const isBucket = (kind: Kind): boolean => kind === 'token-bucket' || kind === 'leaky-bucket';
