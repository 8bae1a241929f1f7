import { blockForgettableAt, isStanding } from '../core/block.js';
import type { Block } from '../core/block.js';
import type { Cell } from '../core/cell.js';
import type { BlockEntry, StoredCell } from '../core/store.js';

/**
 * What a cell still says at `now`: a copy without what is over, or `undefined` when all of it is. Operators see this form,
 * whether the store has swept already or not, and may do with it what they like.
 */
export function liveCell({ scope, cell }: StoredCell, now: number): StoredCell | undefined {
  const counters = cell.counters
    .filter(counter => counter.until > now)
    .map(counter => ({
      ...counter,
      holds: [...counter.holds],
      ...(counter.state === undefined ? {} : { state: [...counter.state] }),
    }));
  const block =
    cell.block !== undefined && blockForgettableAt(cell.block) > now ? { ...cell.block } : undefined;
  if (counters.length === 0 && block === undefined) return undefined;
  return { scope, cell: { v: cell.v, counters, ...(block === undefined ? {} : { block }) } };
}

export function liveCells(cells: readonly StoredCell[], now: number): StoredCell[] {
  return cells.flatMap(stored => liveCell(stored, now) ?? []);
}

export function blockEntry(subjectHash: string, scope: string, block: Block): BlockEntry {
  const { since, until, manual } = block;
  return { subjectHash, scope, since, until, manual };
}

/** The block that stands in a cell at `now`. */
export function standingBlock(cell: Cell | undefined, now: number): Block | undefined {
  const block = cell?.block;
  return isStanding(block, now) ? block : undefined;
}
