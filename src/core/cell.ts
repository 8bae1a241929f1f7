import type { AlgorithmName, CounterState } from '../algorithms/index.js';
import { blockForgettableAt } from './block.js';
import type { Block } from './block.js';

/** The format of a stored cell. A newer release reads every older one: rolling upgrades share a store. */
export const CELL_VERSION = 1;

/** `[lapse, units, lapse, units, …]` in order of lapse: units on hold, kept by the time at which they lapse. */
export type Holds = readonly number[];

/** What most counters have: told by identity. */
export const NO_HOLDS: Holds = Object.freeze<number[]>([]);

/**
 * One counter. Algorithm and window are its identity: a rule whose window changes (a deploy, another plan) counts afresh
 * in a counter of its own, while the old one runs out.
 */
export interface Counter {
  readonly algorithm: AlgorithmName;
  readonly windowMs: number;
  /** `undefined` when nothing is used and only holds keep the counter. */
  readonly state?: CounterState;
  readonly holds: Holds;
  /** The time from which it may be forgotten, as of its last write: nothing used, nothing held. */
  readonly until: number;
}

/** All that is stored for one scope and one subject. Plain data; a store may keep it as JSON. */
export interface Cell {
  readonly v: typeof CELL_VERSION;
  readonly block?: Block;
  readonly counters: readonly Counter[];
}

/** The time from which the cell says nothing any more; `Infinity` while a block for ever stands. */
export function cellForgettableAt(cell: Cell): number {
  let until = cell.block === undefined ? 0 : blockForgettableAt(cell.block);
  for (const counter of cell.counters) until = Math.max(until, counter.until);
  return until;
}

/** The units held at `now`. A hold is dead from its lapse time on. */
export function heldUnits(holds: Holds, now: number): number {
  let sum = 0;
  for (let i = 0; i < holds.length; i += 2) if ((holds[i] ?? 0) > now) sum += holds[i + 1] ?? 0;
  return sum;
}

/**
 * When a hold made at `at` lapses. Multiples of `holdMs` keep the number of sums per counter at two, however many
 * reservations are under way.
 */
export function lapseTime(at: number, holdMs: number): number {
  return (Math.floor(at / holdMs) + 2) * holdMs;
}

/** The holds with `units` more (or, negative, fewer) at `lapse`; the dead ones and the empty ones are dropped. */
export function changeHolds(holds: Holds, lapse: number, units: number, now: number): Holds {
  const sums = new Map<number, number>();
  for (let i = 0; i < holds.length; i += 2) {
    if ((holds[i] ?? 0) > now) sums.set(holds[i] ?? 0, holds[i + 1] ?? 0);
  }
  // Taking off never touches the holds of another lapse time, nor goes below zero.
  if (units > 0 || sums.has(lapse)) sums.set(lapse, Math.max(0, (sums.get(lapse) ?? 0) + units));
  const changed = [...sums].filter(([, sum]) => sum > 0).sort(([a], [b]) => a - b);
  return changed.length === 0 ? NO_HOLDS : changed.flat();
}
