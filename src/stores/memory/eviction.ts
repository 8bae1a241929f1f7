import { algorithms } from '../../algorithms/index.js';
import { heldUnits } from '../../core/cell.js';
import type { Entry } from './entry.js';
import type { EntryTable } from './entry-table.js';

/** How many entries are compared. With 16, the one that goes is nearly always among the emptiest fifth. */
const SAMPLE = 16;

/**
 * Who goes when the store is full. Drawn from the entries without a block as long as there is one: the emptiest of the
 * sample, so that a flood of new addresses, each with a unit or two, drives out itself. Where all are blocked, the block
 * that ends first. Whatever of the sample is over goes before everything else.
 *
 * Answers `undefined` for an empty table only.
 */
export function pickVictim(table: EntryTable, now: number): Entry | undefined {
  const open = table.openSize;
  return open > 0
    ? least(table, 0, open, entry => (entry.until <= now ? -1 : fullness(entry, now)))
    : least(table, 0, table.size, entry => entry.cell.block?.until ?? Infinity);
}

/** The entry of the lowest score among a sample of `[from, to)`; of equal ones that which is over first. */
function least(
  table: EntryTable,
  from: number,
  to: number,
  score: (entry: Entry) => number,
): Entry | undefined {
  const count = to - from;
  let best: Entry | undefined;
  let bestScore = Infinity;
  for (let i = 0; i < Math.min(SAMPLE, count); i += 1) {
    const entry = table.at(from + (count <= SAMPLE ? i : Math.floor(Math.random() * count)));
    if (entry === undefined) continue;
    const value = score(entry);
    if (best === undefined || value < bestScore || (value === bestScore && entry.until < best.until)) {
      best = entry;
      bestScore = value;
    }
  }
  return best;
}

/** Used and held as a share of the capacity, by the rule last seen; what is left of another plan's counter says little. */
function fullness({ cell, rule }: Entry, now: number): number {
  const counter = cell.counters.find(c => c.algorithm === rule.algorithm && c.windowMs === rule.windowMs);
  if (counter === undefined || rule.capacity === 0) return 0;
  const used = algorithms[rule.algorithm].used(counter.state, rule, now) / rule.windowMs;
  return (used + heldUnits(counter.holds, now)) / rule.capacity;
}
