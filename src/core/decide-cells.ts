import { algorithms, NONE } from '../algorithms/index.js';
import { CELL_VERSION, NO_HOLDS } from './cell.js';
import type { Cell, Counter } from './cell.js';
import type { Check } from './check.js';
import { decide } from './decide.js';

/**
 * `decide` for who keeps cells: `cells[i]` is the cell of `checks[i]`, which nobody has decided yet. Answers the cells as they
 * now are, `undefined` where nothing is left to store, and the very object that was passed in where nothing changed. None of
 * those passed in is changed.
 */
export function decideCells(
  checks: readonly Check[],
  cells: readonly (Cell | undefined)[],
  now: number,
): (Cell | undefined)[] {
  checks.forEach((check, i) => {
    const cell = cells[i];
    if (cell !== undefined) load(check, cell);
  });
  decide(checks, now);
  return checks.map((check, i) => (check.changed ? saved(check, cells[i], now) : cells[i]));
}

const isOf = (counter: Counter, { rule }: Check): boolean =>
  counter.algorithm === rule.algorithm && counter.windowMs === rule.windowMs;

function load(check: Check, { block, counters }: Cell): void {
  check.block = block;
  for (const counter of counters) {
    if (!isOf(counter, check)) continue;
    if (counter.state !== undefined) algorithms[counter.algorithm].load(check, counter.state);
    check.holds = counter.holds.length === 0 ? NO_HOLDS : counter.holds;
  }
}

/** The cell to store. */
function saved(check: Check, stored: Cell | undefined, now: number): Cell | undefined {
  const { block, keepMs, forgotten } = check;
  const counters: Counter[] = [];
  if (!forgotten) {
    for (const other of stored?.counters ?? []) {
      if (other.until > now && !isOf(other, check)) counters.push(other);
    }
  }
  if (keepMs > 0) counters.push(counterOf(check, now + keepMs));
  if (block === undefined && counters.length === 0) return undefined;
  return block === undefined ? { v: CELL_VERSION, counters } : { v: CELL_VERSION, block, counters };
}

function counterOf(check: Check, until: number): Counter {
  const { rule, holds, a } = check;
  const { algorithm, windowMs } = rule;
  if (a === NONE) return { algorithm, windowMs, holds, until };
  return { algorithm, windowMs, state: algorithms[algorithm].save(check), holds, until };
}
