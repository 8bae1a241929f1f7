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
  const position =
    open > 0
      ? least(table, open, at => table.fills.share(at, now))
      : least(table, table.size, at => table.at(at)?.cell.block?.until ?? Infinity);
  return table.at(position);
}

/** The position of the lowest score among a sample of the first `count`; of equal ones that which is over first. */
function least(table: EntryTable, count: number, score: (position: number) => number): number {
  let best = -1;
  let bestScore = Infinity;
  for (let i = 0; i < Math.min(SAMPLE, count); i += 1) {
    const at = count <= SAMPLE ? i : Math.floor(Math.random() * count);
    const value = score(at);
    const isTie = value === bestScore && table.fills.until(at) < table.fills.until(best);
    if (best < 0 || value < bestScore || isTie) {
      best = at;
      bestScore = value;
    }
  }
  return best;
}
