import { algorithms, NONE } from '../../algorithms/index.js';
import type { AlgorithmName, Registers } from '../../algorithms/index.js';
import { ceilDiv } from '../../algorithms/algorithm.js';
import { blockForgettableAt } from '../../core/block.js';
import { heldUnits, NO_HOLDS } from '../../core/cell.js';
import type { Counter } from '../../core/cell.js';
import type { Check } from '../../core/check.js';
import type { Blocked } from './blocks.js';
import type { Overflow, Segment } from './segment.js';
import type { Kind, Series } from './series.js';

/*
 * The three numbers of a row are the registers of its counter, where a bucket keeps its limit in the third, and a sliding log
 * the time of its last entry in the first: when a row is over can be told without its rule. NONE in the first: nothing is
 * used, and only holds keep the counter.
 */

/** Leaves the counter of a row in the registers of a check. The log is the row's own: what changes it is saved. */
export function loadRow(segment: Segment, row: number, check: Check): void {
  loadRegisters(segment, row, check);
  check.holds = overflowOf(segment, row)?.holds ?? NO_HOLDS;
}

function loadRegisters(segment: Segment, row: number, registers: Registers): void {
  const { numbers } = segment;
  registers.a = numbers[3 * row] ?? NONE;
  registers.b = numbers[3 * row + 1] ?? 0;
  registers.c = numbers[3 * row + 2] ?? 0;
  const log = overflowOf(segment, row)?.log;
  if (log !== undefined) registers.log = log;
}

export function saveRow(segment: Segment, row: number, check: Check): void {
  const { rule, a, b, c, log, holds } = check;
  const isLog = rule.algorithm === 'sliding-log' && a !== NONE;
  segment.numbers[3 * row] = isLog ? (log[log.length - 2] ?? NONE) : a;
  segment.numbers[3 * row + 1] = b;
  segment.numbers[3 * row + 2] = isBucket(rule.algorithm) ? rule.limit : c;
  segment.capacities[row] = rule.capacity;
  if (isLog) segment.setBeside(row, { log, holds });
  else segment.setBeside(row, holds === NO_HOLDS ? undefined : { log: undefined, holds });
}

/** The counter of a row as plain data. */
export function counterAt(segment: Segment, row: number, series: Series): Counter {
  const algorithm = series.kind as AlgorithmName;
  const { windowMs } = series;
  const holds = overflowOf(segment, row)?.holds ?? NO_HOLDS;
  const until = rowUntil(segment, row, series);
  const registers: Registers = { a: NONE, b: 0, c: 0, log: [] };
  loadRegisters(segment, row, registers);
  if (registers.a === NONE) return { algorithm, windowMs, holds, until };
  return { algorithm, windowMs, state: algorithms[algorithm].save(registers), holds, until };
}

export function blockedAt(segment: Segment, row: number): Blocked {
  return segment.beside?.[row] as Blocked;
}

/** The time from which the row says nothing any more. */
export function rowUntil(segment: Segment, row: number, { kind, windowMs }: Series): number {
  if (kind === 'block') return blockForgettableAt(blockedAt(segment, row).block);
  const { numbers } = segment;
  const first = numbers[3 * row] ?? NONE;
  const second = numbers[3 * row + 1] ?? 0;
  const heldUntil = segment.beside === undefined ? 0 : (overflowOf(segment, row)?.holds.at(-2) ?? 0);
  if (first === NONE) return heldUntil;
  if (isBucket(kind)) return Math.max(heldUntil, second + ceilDiv(first, numbers[3 * row + 2] ?? 1));
  // What is in the current window of a sliding one fades while the next one runs.
  return Math.max(heldUntil, first + (kind === 'sliding-window' && second > 0 ? 2 : 1) * windowMs);
}

/** Used and held of a counter as a share of its capacity. */
export function rowShare(segment: Segment, row: number, { kind, windowMs }: Series, now: number): number {
  const capacity = segment.capacities[row] ?? 1;
  const rule = { limit: segment.numbers[3 * row + 2] ?? 1, windowMs, capacity, align: 'first-hit' } as const;
  const registers: Registers = { a: NONE, b: 0, c: 0, log: [] };
  loadRegisters(segment, row, registers);
  const used = registers.a === NONE ? 0 : algorithms[kind as AlgorithmName].used(registers, rule, now);
  return (used / windowMs + heldUnits(overflowOf(segment, row)?.holds ?? NO_HOLDS, now)) / capacity;
}

function overflowOf({ beside }: Segment, row: number): Overflow | undefined {
  return beside?.[row] as Overflow | undefined;
}

const isBucket = (kind: Kind): boolean => kind === 'token-bucket' || kind === 'leaky-bucket';
